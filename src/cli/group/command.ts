/** The `group` sub-commands: flags and help. */
import { Command, Option } from 'commander';
import { GROUP_FOLDER_DEFAULT } from '../conventions.ts';
import { outputOption, withAdminOptions } from '../options.ts';
import { conclude } from '../output/outcome.ts';
import type { ConfigureFlags } from './configure.ts';
import type { OfLocalGroup, UpFlags } from './group.ts';
import type { IssuerFlags } from './issuer.ts';
import type { NewLineageFlags } from './new-lineage.ts';
import type { AuditFlags, OfGroup } from './operate.ts';

export function groupCommand(): Command {
  const group = new Command('group').description(
    'Look after a lock group; or run a whole one on this machine, to try what it survives.',
  );
  group
    .command('up')
    .description('Start three etcd members, three lock servers and a sidecar; again: those that have ended.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .option(
      '-f, --filename <manifest>',
      'a LockNamespace, for a group that is made now; default: one called "locks"',
    )
    .option('--etcd <program>', 'the etcd to run; default: the one that a checkout of the project builds')
    .option('--insecure', 'plain text and no tokens; for a group that is made now')
    .addOption(outputOption())
    .addHelpText('after', UP_HELP)
    .action(async (flags: UpFlags) => (await import('./group.ts')).runUp(flags));
  group
    .command('status')
    .description('Show its processes, who leads, and how far each server is.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .addOption(outputOption())
    .addHelpText('after', STATUS_HELP)
    .action(async (flags: OfLocalGroup) => (await import('./group.ts')).runStatus(flags));
  group
    .command('down')
    .description('End its processes. What they have written stays, and "up" goes on with it.')
    .option('-d, --dir <folder>', 'where everything is kept', GROUP_FOLDER_DEFAULT)
    .addOption(outputOption())
    .addHelpText('after', DOWN_HELP)
    .action(async (flags: OfLocalGroup) => (await import('./group.ts')).runDown(flags));
  group
    .command('new-lineage')
    .description(
      'Begin anew with an empty log, when the one there is was rolled back and its group has halted.',
    )
    .option('-c, --config <file>', 'configuration of one of its lock servers')
    .option('-d, --dir <folder>', 'folder of a group of "leasehold group up"')
    .option('--data <folder>', 'data folder of "leasehold dev", which must not run')
    .option('-n, --namespace <name>', 'which LockNamespace of --data, if it holds several')
    .option('-y, --yes', 'do it; without it, only say what it would do')
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .addHelpText('after', NEW_LINEAGE_HELP)
    .action(async (flags: NewLineageFlags) => {
      const { concluded } = await import('./group.ts');
      await concluded(flags.output, async () => (await import('./new-lineage.ts')).runNewLineage(flags));
    });
  group
    .command('issuer', { hidden: true })
    .description('Renew the token of the sidecar, as the kubelet would.')
    .requiredOption('--dir <folder>', 'where the group is kept')
    .requiredOption('--account <account>', 'whose token it is')
    .requiredOption('--port <port>', 'where it says that it runs')
    .addHelpText('after', ISSUER_HELP)
    .action(async (flags: IssuerFlags) => (await import('./issuer.ts')).runIssuer(flags));
  const below = [configureCommand(), membersCommand(), handOverCommand(), snapshotCommand(), auditCommand()];
  for (const command of below) {
    group.addCommand(command);
  }
  return group;
}

function ofGroup(name: string): Command {
  return withAdminOptions(new Command(name))
    .option('-n, --namespace <alias>', 'which namespace, when it serves several')
    .addOption(outputOption());
}

function configureCommand(): Command {
  return withAdminOptions(new Command('configure'))
    .description('Put a LockNamespace into force, and show what that changes.')
    .requiredOption('-f, --filename <manifest>', 'the LockNamespace; its name says which one is meant')
    .option('--dry-run', 'only show what would change')
    .addOption(outputOption())
    .addHelpText('after', CONFIGURE_HELP)
    .action(async (flags: ConfigureFlags) => {
      const { configure } = await import('./configure.ts');
      await conclude(() => configure(flags), flags.output);
    });
}

function membersCommand(): Command {
  return ofGroup('members')
    .description('Show each server of a group: its role, how far it is, and what keeps it from taking over.')
    .addHelpText('after', MEMBERS_HELP)
    .action(async (flags: OfGroup) => {
      const { members } = await import('./operate.ts');
      await conclude(() => members(flags), flags.output);
    });
}

function handOverCommand(): Command {
  return ofGroup('hand-over')
    .description('Let another server lead: the leader resigns in order, and nobody loses anything.')
    .option('--to <server>', 'which one; default: the one that is least behind')
    .addHelpText('after', HAND_OVER_HELP)
    .action(async (flags: OfGroup & { readonly to?: string }) => {
      const { handOver } = await import('./operate.ts');
      await conclude(() => handOver(flags), flags.output);
    });
}

function snapshotCommand(): Command {
  return ofGroup('snapshot')
    .description('Make a snapshot of the state now, and trim the log as far as it may.')
    .addHelpText('after', SNAPSHOT_HELP)
    .action(async (flags: OfGroup) => {
      const { snapshot } = await import('./operate.ts');
      await conclude(() => snapshot(flags), flags.output);
    });
}

function auditCommand(): Command {
  return ofGroup('audit')
    .description('Show how far the audit is exported, or give up the place of an exporter that is gone.')
    .option('--forget', 'give it up: the log is not held back for it any more')
    .addHelpText('after', AUDIT_HELP)
    .action(async (flags: AuditFlags) => {
      const { audit } = await import('./operate.ts');
      await conclude(() => audit(flags), flags.output);
    });
}

const CONFIGURE_HELP = `
For groups whose servers say "configuredBy: admin"; elsewhere the leader reads its manifest itself, and this is refused.
The manifest is checked as a whole first. What is held stays held: new limits bind new grants, and who is no consumer
any more is revoked. Each configuration has the next version; one that changes nothing is not sent.
With -o json: {namespace, version, applied, changes: [{field, from, to}]}.

Examples:
  leasehold group configure -f payouts.yaml --dry-run
  leasehold group configure -f payouts.yaml --endpoint a.payouts:7400 --ca ca.pem --cert me.pem --key me-key.pem

Exit codes: 0 in force (or nothing to change, or shown), 123 no server serves there, 125 the manifest is not valid, the
group takes no configuration from here, or wrong usage.
`;

const MEMBERS_HELP = `
Asked of any server of the group, which asks the others. LAG is how many entries a server has not applied yet; PROBLEM
says why it could not take over at once. With -o json: {members: [...], logIndex}.

Examples:
  leasehold group members
  leasehold group members --admin-socket /run/leasehold/admin.sock -o json

Exit codes: 0 all of them could lead, 1 one could not, 123 no server serves there, 125 wrong usage.
`;

const HAND_OVER_HELP = `
Before a machine is taken down, or to move the leader near its etcd. Sessions, locks and places in queues stay as they
are; a request that is under way is answered by the next leader. Nothing is done when no other server could lead at once.

Examples:
  leasehold group hand-over
  leasehold group hand-over --to b

Exit codes: 0 handed over, 1 another server than the one asked for leads, 123 no server serves there, 125 nobody could
take over, or wrong usage.
`;

const SNAPSHOT_HELP = `
A snapshot is made by itself when the log has grown; this is for the time before a back-up, or when space is short.

Examples:
  leasehold group snapshot

Exit codes: 0 made, 123 no server serves there, 125 wrong usage.
`;

const AUDIT_HELP = `
The log keeps what is not exported yet, up to a bound (docs/AUDIT.md). When there is to be no exporter any more, take
the section "audit" out of the configuration of all servers, restart them, and give its place up with --forget. An
exporter that begins later starts with the oldest entry there is. With -o json: {hasCursor, cursor, logIndex, lagEntries,
lagBytes, serverId, sink}; with --forget: {hadCursor, cursor}.

Examples:
  leasehold group audit
  leasehold group audit --forget

Exit codes: 0 shown or given up, 123 no server serves there, 125 an exporter runs, or wrong usage.
`;

const UP_HELP = `
The processes go on when this command has ended; "leasehold group down" ends them. All of them listen on
127.0.0.1, on ports that were free when the group was made. They speak TLS with certificates of an authority
of the group's own, and the sidecar proves who it is with a token, which the process "issuer" renews as the
kubelet would; with --insecure all of it is plain text. A folder that holds other files is refused.
With -o json: {started, alias, url, folder, processes}.

Examples:
  leasehold group up
  leasehold group up --dir /tmp/group --filename config/samples/jobs.yaml

Exit codes: 0 it serves, 123 something does not start (its log says why), 125 wrong usage.
`;

const ISSUER_HELP = `
"leasehold group up" starts it with the group; nobody needs to start it by hand.

Examples:
  leasehold group issuer --dir .leasehold/group --account default/sidecar --port 7079

Exit codes: 0 ended by a signal, 125 wrong usage.
`;

const STATUS_HELP = `
LAG is how many entries a server has not applied yet. With -o json: {processes: [{name, kind, pid, serves, server}]};
"pid" is null of one that has ended, "server" is what a lock server says of itself.

Examples:
  leasehold group status
  leasehold group status -o json

Exit codes: 0 shown, 125 there is no group.
`;

const DOWN_HELP = `
Only processes that "leasehold group up" has started are ended: each is known by its id and its start time.
With -o json: {ended: [...]}, the names of those that ran.

Examples:
  leasehold group down
  leasehold group down && rm -r .leasehold/group

Exit codes: 0 none of them runs any more, 123 one cannot be ended, 125 there is no group.
`;

const NEW_LINEAGE_HELP = `
A log that was set back to an older copy does not know what was granted since, so its group serves nothing
("leasehold group status" shows it as halted; docs/runbooks/halted.md). If the newer data is still there,
bring it back instead. A new lineage is an empty log: all sessions end, fencing tokens go on above all that
were ever given, and nothing is granted until every lock of the old one is over: the longest TTL and the
lock-delay. Lock servers of a group notice it and start anew by themselves.

Examples:
  leasehold group new-lineage --config server-a.yaml
  leasehold group new-lineage --config server-a.yaml --yes
  leasehold group new-lineage --data .leasehold --namespace payouts --yes

Exit codes: 0 done, or shown without --yes; 123 the log does not answer or is in use, 125 wrong usage.
`;
