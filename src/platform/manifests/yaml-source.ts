/**
 * Reading YAML: text to documents, with the place of every field, and bounded work on any input.
 * Plain scalars are read as Kubernetes' own YAML reader does (YAML 1.1: `yes` is true, `010` is 8), so that a manifest
 * means the same here as in a cluster; timestamps and sexagesimal numbers stay text, as there.
 */
import {
  type Alias,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Tags,
  visit,
  type YAMLMap,
} from 'yaml';

/** A manifest file may hold about a hundred full LockNamespaces; more belong into more files. */
export const FILE_BYTES_MAX = 256 * 1024;
/** Aliases (`*name`) of one document, as written and as expanded: a few are handy, many are an attack. */
const ALIASES_MAX = 64;
/** A LockNamespace is seven levels deep. */
const DEPTH_MAX = 64;
/** Keys, items and scalars of one document, after its aliases were expanded. */
const VALUES_MAX = 50_000;
/** After the first mistakes in its syntax a document yields mostly consequences of them. */
const SYNTAX_ERRORS_MAX = 5;
const REPEATED_KEYS_MAX = 100;

type Path = readonly (string | number)[];

/** A finding without its file and document. */
export interface YamlFinding {
  readonly offset: number;
  readonly path: Path;
  readonly message: string;
}

export interface YamlDocument {
  /** What is wrong with the text itself. */
  readonly findings: readonly YamlFinding[];
  /** The document as JSON-like data; null when it is empty, undefined when it could not be read. */
  readonly value: unknown;
  /** Offset of the field at `path`, or of the nearest field around it that exists. */
  locate(path: Path, at: 'key' | 'value' | 'missing'): number;
}

/** The documents of `text`, at most `FILE_BYTES_MAX` long. Never throws. */
export function readYaml(text: string): readonly YamlDocument[] {
  const parsed = parseAllDocuments(text, {
    version: '1.1',
    customTags: kubernetesTags,
    resolveKnownTags: false,
    prettyErrors: false,
    stringKeys: true,
    // The library's own check compares each key with each; `repeatedKeys` below takes linear time.
    uniqueKeys: false,
    logLevel: 'silent',
  });
  if (!('empty' in parsed)) return parsed.map(readDocument);
  const findings = [...parsed.errors, ...parsed.warnings].map(toFinding);
  return findings.length === 0 ? [] : [{ findings, value: undefined, locate: () => 0 }];
}

/** Line and column of offsets in `text`, both from 1. */
export function placesIn(
  text: string,
): (offset: number) => { readonly line: number; readonly column: number } {
  const lines = new LineCounter();
  for (let start = 0; start !== -1 && start <= text.length; ) {
    lines.addNewLine(start);
    const end = text.indexOf('\n', start);
    start = end === -1 ? -1 : end + 1;
  }
  return (offset) => {
    const { line, col } = lines.linePos(Math.max(0, Math.min(offset, text.length)));
    return { line, column: col };
  };
}

function kubernetesTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === 'string') return true;
    const isSexagesimal = 'format' in tag && tag.format === 'TIME';
    return !isSexagesimal && !/:(binary|omap|pairs|set|timestamp)$/.test(tag.tag);
  });
}

function toFinding({
  pos,
  message,
}: {
  readonly pos: [number, number];
  readonly message: string;
}): YamlFinding {
  return { offset: pos[0], path: [], message: `this is not valid YAML: ${message}` };
}

function readDocument(document: Document.Parsed): YamlDocument {
  const locate = locatorOf(document);
  const syntax = [...document.errors, ...document.warnings].slice(0, SYNTAX_ERRORS_MAX).map((error) => {
    const finding = toFinding(error);
    return { ...finding, offset: openedQuote(document, error.code, finding.offset) };
  });
  if (syntax.length > 0) return { findings: syntax, value: undefined, locate };
  try {
    const { excess, repeated } = survey(document);
    if (excess !== undefined) return { findings: [excess], value: undefined, locate };
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX });
    if (isWithin(VALUES_MAX, value)) return { findings: repeated, value, locate };
    const message = `a document must hold at most ${VALUES_MAX} values, aliases expanded: split it`;
    return { findings: [{ offset: document.range[0], path: [], message }], value: undefined, locate };
  } catch (error) {
    // What is left to fail here is an alias without anchor, of itself, or of too much; or a stack that ran full.
    const reason = error instanceof Error ? error.message : String(error);
    const finding = {
      offset: firstAlias(document)?.range?.[0] ?? 0,
      path: [],
      message: `cannot be read: ${reason}`,
    };
    return { findings: [finding], value: undefined, locate };
  }
}

/** A quote that is never closed is noticed at the end of the text; what has to be mended is where it opens. */
function openedQuote(document: Document.Parsed, code: string, offset: number): number {
  let opening = offset;
  if (code !== 'MISSING_CHAR') return opening;
  visit(document, {
    Scalar: (_key, { type, range }) => {
      const isQuoted = type === 'QUOTE_DOUBLE' || type === 'QUOTE_SINGLE';
      if (isQuoted && range && range[0] < offset && offset <= range[2]) opening = range[0];
    },
  });
  return opening;
}

interface Survey {
  /** Set when the document is too deep or has too many aliases to be looked at any further. */
  readonly excess?: YamlFinding;
  readonly repeated: readonly YamlFinding[];
}

function survey(document: Document.Parsed): Survey {
  const repeated: YamlFinding[] = [];
  let aliases = 0;
  let excess: YamlFinding | undefined;
  const stop = (node: Node, message: string): symbol => {
    excess = { offset: node.range?.[0] ?? 0, path: [], message };
    return visit.BREAK;
  };
  visit(document, {
    Alias: (_key, alias) => {
      aliases += 1;
      if (aliases <= ALIASES_MAX) return undefined;
      return stop(alias, `a document must have at most ${ALIASES_MAX} aliases (*name): write the values out`);
    },
    Collection: (_key, node, ancestors) => {
      const depth = ancestors.filter((ancestor) => isCollection(ancestor)).length;
      if (depth >= DEPTH_MAX)
        return stop(node, `a document must be at most ${DEPTH_MAX} levels deep: nest it less`);
      if (isMap(node)) repeated.push(...repeatedKeys(node, ancestors));
      return repeated.length < REPEATED_KEYS_MAX ? undefined : visit.BREAK;
    },
  });
  return { repeated, ...(excess === undefined ? {} : { excess }) };
}

type Ancestors = readonly (Document | Node | Pair)[];

function repeatedKeys(map: YAMLMap, ancestors: Ancestors): YamlFinding[] {
  const seen = new Set<string>();
  const findings: YamlFinding[] = [];
  for (const { key } of map.items) {
    const name = keyText(key);
    // A merge key (`<<`) may occur more than once.
    if (!seen.has(name) || name === '<<') {
      seen.add(name);
      continue;
    }
    if (findings.length >= REPEATED_KEYS_MAX) break;
    const message = `${JSON.stringify(name.slice(0, 100))} is given more than once in one mapping: remove one`;
    const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
    findings.push({ offset, path: [...pathOf([...ancestors, map]), name], message });
  }
  return findings;
}

/** The path to the last of `chain`, which leads to it from the document. */
function pathOf(chain: Ancestors): Path {
  return chain.flatMap((step, index): Path => {
    if (isPair(step)) return [keyText(step.key)];
    const next = chain[index + 1];
    return isSeq(step) && next !== undefined ? [step.items.indexOf(next)] : [];
  });
}

function keyText(key: unknown): string {
  return isScalar(key) ? String(key.value ?? '') : '';
}

/** Whether `value` holds at most `limit` values. An alias inside its own anchor makes it endless: then it does not. */
function isWithin(limit: number, value: unknown): boolean {
  const open: unknown[] = [value];
  for (let count = 0; count <= limit; count++) {
    const next = open.pop();
    if (typeof next === 'object' && next !== null) {
      for (const item of Object.values(next)) open.push(item);
    }
    if (open.length === 0) return true;
    if (open.length > limit) return false;
  }
  return false;
}

function firstAlias(document: Document.Parsed): Alias | undefined {
  let first: Alias | undefined;
  visit(document, {
    Alias: (_key, alias) => {
      first = alias;
      return visit.BREAK;
    },
  });
  return first;
}

function locatorOf(document: Document.Parsed): YamlDocument['locate'] {
  // The library searches the whole document for the anchor of an alias, so each is looked up once.
  const anchored = new Map<Alias, Node | undefined>();
  const resolve = (alias: Alias): Node | undefined => {
    if (!anchored.has(alias)) anchored.set(alias, alias.resolve(document));
    return anchored.get(alias);
  };
  return (path, at) => {
    let node: unknown = document.contents;
    let offset = startOf(node) ?? document.range[0];
    for (const step of path) {
      const found = childOf(isAlias(node) ? resolve(node) : node, step);
      if (found === undefined) return offset;
      node = found.value;
      offset = found.offset ?? offset;
    }
    return at === 'value' && isInline(node) ? (startOf(node) ?? offset) : offset;
  };
}

/** A value that starts on a line of its own, or is not there, is shown at its key, which is where people look. */
function isInline(node: unknown): boolean {
  if (isCollection(node)) return node.flow === true;
  if (!isScalar(node) && !isAlias(node)) return false;
  return node.range !== undefined && node.range !== null && node.range[1] > node.range[0];
}

function childOf(
  parent: unknown,
  step: string | number,
): { value: unknown; offset: number | undefined } | undefined {
  if (isMap(parent) && typeof step === 'string') {
    const pair = parent.items.findLast(({ key }) => keyText(key) === step);
    return pair && { value: pair.value, offset: startOf(pair.key) };
  }
  if (isSeq(parent) && typeof step === 'number' && step in parent.items) {
    const value = parent.items[step];
    return { value, offset: startOf(value) };
  }
  return undefined;
}

function startOf(node: unknown): number | undefined {
  return isScalar(node) || isAlias(node) || isCollection(node) ? node.range?.[0] : undefined;
}
