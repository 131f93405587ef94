/** The `completion` sub-command. */
import { Argument, Command } from 'commander';
import { conclude, print } from '../output/outcome.ts';
import type { Shell } from './scripts.ts';

export function completionCommand(program: () => Command): Command {
  return new Command('completion')
    .description('Print a script that completes commands and options in a shell.')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText('after', HELP)
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./scripts.ts');
      await conclude(async () => {
        await print(completionScript(shell, program()));
        return true;
      });
    });
}

const HELP = `
Names of locks are not completed.

Examples:
  source <(leasehold completion bash)        in ~/.bashrc
  source <(leasehold completion zsh)         in ~/.zshrc, after compinit
  leasehold completion fish | source         in ~/.config/fish/config.fish
`;
