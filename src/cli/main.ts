#!/usr/bin/env node
/**
 * `leasehold`: one program, sub-commands. Each command lives in its own file; here is only the list of them.
 */
import { Command } from 'commander';
import { devCommand } from './dev/command.ts';

const program = new Command('leasehold')
  .description('Distributed locks with fencing tokens, first-come-first-served queues and leases.')
  .showHelpAfterError('(run with --help for usage)');

program.addCommand(devCommand());
await program.parseAsync();
