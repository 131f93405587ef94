/**
 * Completion for shells, made from the tree of commands: for each path of sub-commands ("history check") the words that may follow.
 * The scripts know nothing of the program but these words, so completing starts no process.
 */
import type { Command } from 'commander';

export type Shell = 'bash' | 'zsh' | 'fish';

/** What may follow after the sub-commands `path`. */
interface Place {
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly Word[];
}

interface Word {
  readonly text: string;
  readonly description: string;
}

export function completionScript(shell: Shell, program: Command): string {
  const places = placesOf(program, '');
  switch (shell) {
    case 'bash':
      return bash(places);
    case 'zsh':
      return zsh(places);
    case 'fish':
      return fish(places);
  }
}

function placesOf(command: Command, path: string): Place[] {
  const options = [...command.options]
    .filter(({ hidden }) => !hidden)
    .map(({ long, short, description }) => ({ text: long ?? short ?? '', description }));
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const commands = [
    ...command.commands.map((sub) => ({ text: sub.name(), description: sub.description() })),
    ...choices.map((text) => ({ text, description: '' })),
  ];
  const here = { path, commands, options: [...options, { text: '--help', description: 'how to use it' }] };
  const below = command.commands.flatMap((sub) => placesOf(sub, `${path} ${sub.name()}`.trim()));
  return [here, ...below];
}

/** A function that finds the place: the longest path of sub-commands that the words so far begin with. */
function placeFinder(words: string, count: string): string {
  return `  local place='' i word
  for ((i = ${words}; i < ${count}; i++)); do
    word="\${words[i]}"
    case "$word" in -*) continue ;; esac
    case " $known " in *" \${place:+\${place}_}$word "*) place="\${place:+\${place}_}$word" ;; *) break ;; esac
  done`;
}

function knownPaths(places: readonly Place[]): string {
  return places
    .filter(({ path }) => path !== '')
    .map(({ path }) => path.replaceAll(' ', '_'))
    .join(' ');
}

function cases(places: readonly Place[], answer: (words: string) => string): string {
  return places
    .map(({ path, commands, options }) => {
      const words = [...commands, ...options].map(({ text }) => text).join(' ');
      return `    '${path.replaceAll(' ', '_')}') ${answer(words)} ;;`;
    })
    .join('\n');
}

function bash(places: readonly Place[]): string {
  return `_leasehold() {
  local known='${knownPaths(places)}' current="\${COMP_WORDS[COMP_CWORD]}" choices=''
  local words=("\${COMP_WORDS[@]}")
${placeFinder('1', 'COMP_CWORD')}
  case "$place" in
${cases(places, (words) => `choices='${words}'`)}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _leasehold leasehold`;
}

/** Arrays of zsh count from 1. */
function zsh(places: readonly Place[]): string {
  return `_leasehold() {
  local known='${knownPaths(places)}'
${placeFinder('2', 'CURRENT')}
  case "$place" in
${cases(places, (words) => `compadd -- ${words}`)}
  esac
}
compdef _leasehold leasehold`;
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, commands, options }) => {
    const isHere = path === '' ? '__fish_use_subcommand' : seen(path);
    return [
      ...commands.map(({ text, description }) => fishLine(isHere, `-f -a ${text}`, description)),
      ...options.map(({ text, description }) => fishLine(isHere, `-l ${text.slice(2)}`, description)),
    ];
  });
  return lines.join('\n');
}

function seen(path: string): string {
  return path
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');
}

function fishLine(condition: string, what: string, description: string): string {
  const quoted = description.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
  return `complete -c leasehold -n '${condition}' ${what}${quoted === '' ? '' : ` -d '${quoted}'`}`;
}
