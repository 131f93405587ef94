/** `leasehold help group up`, as many write it: the library's own `help` looks at one word, and shows the help of `group`. */

/** `args`: what stands behind the program's name. */
export function withHelpWords(args: readonly string[]): readonly string[] {
  const [first, ...words] = args;
  const areCommands = words.length > 0 && words.every((word) => !word.startsWith('-'));
  return first === 'help' && areCommands ? [...words, '--help'] : args;
}
