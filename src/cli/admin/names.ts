/** Full names as people write them, and the two parts that the admin socket wants. */

/** `<alias>/<rest>`; the options module has made sure that both are there. */
export function splitName(fullName: string): { readonly namespace: string; readonly name: string } {
  const slash = fullName.indexOf('/');
  return { namespace: fullName.slice(0, slash), name: fullName.slice(slash + 1) };
}

/** An alias, or `<alias>/<how names start>`, or nothing. */
export function splitPrefix(prefix: string): { readonly namespace: string; readonly namePrefix: string } {
  const slash = prefix.indexOf('/');
  if (slash < 0) return { namespace: prefix, namePrefix: '' };
  return { namespace: prefix.slice(0, slash), namePrefix: prefix.slice(slash + 1) };
}
