/**
 * Splits SQL into statements, and removes comments and repeated spaces. Understands quotes, dollar
 * quotes and comments, which is sufficient for our own migrations.
 */
export const splitStatements = (sql: string): string[] => splitSql(sql, ';');

/**
 * Tokens that may contain a separator: comments, strings, quoted names and dollar-quoted bodies.
 */
const token = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$\w*\$)[\s\S]*?\1|[\s\S]/g;

/** Splits SQL at separators outside of brackets. */
function splitSql(sql: string, separator: ';' | ','): string[] {
  const found: string[] = [];
  let current = '';
  let depth = 0;
  for (const [text] of sql.matchAll(token)) {
    if (text === '(') depth += 1;
    if (text === ')') depth -= 1;
    if (text === separator && depth === 0) {
      found.push(current);
      current = '';
    } else current += /^(--|\/\*)/.test(text) ? ' ' : text;
  }
  return [...found, current]
    .map((part) => part.replace(/\s+/g, ' ').trim())
    .filter((part) => part !== '');
}

/** Returns the part of a migration file that is run. */
export function upPart(file: string): string {
  return (file.split(/^\s*--\s*Down Migration/im)[0] ?? '').replace(/^\s*--\s*Up Migration/i, '');
}

/**
 * Lock that a statement holds until its transaction ends (PostgreSQL documentation, "Explicit
 * Locking").
 */
type LockMode =
  | 'ACCESS EXCLUSIVE'
  | 'SHARE'
  | 'SHARE ROW EXCLUSIVE'
  | 'SHARE UPDATE EXCLUSIVE'
  | 'ROW EXCLUSIVE'
  | 'none';

/** What a statement does with the rows of its table: nothing, read all, or write all. */
type Cost = 'catalogue' | 'scan' | 'rewrite' | 'rows';

/** Effect of a migration's statement on a database that contains data. */
export interface Effect {
  /**
   * Table that the statement locks. Undefined if the table is new, or if the object is no table.
   */
  table?: string | undefined;
  creates?: string;
  lock: LockMode;
  cost: Cost;
  /** Reason why processes of the previous version fail after the statement. */
  breaks?: string;
  /** True if the statement must run outside of a transaction. */
  isConcurrent?: boolean;
  /** False if this file does not know the statement. */
  isKnown: boolean;
}

type Rule = readonly [RegExp, Omit<Effect, 'table' | 'creates' | 'isKnown'>];

const volatileDefault =
  /\bDEFAULT (gen_random_uuid|uuid\w*|random|clock_timestamp|timeofday|nextval)\b|\bGENERATED (ALWAYS|BY DEFAULT) AS\b|\b(big|small)?serial\b/i;
const dropped = 'the version before still names it';

/** Actions of ALTER TABLE. The first matching rule applies. */
const actions: readonly Rule[] = [
  [/^ADD (CONSTRAINT \S+ )?(CHECK|FOREIGN KEY)\b.*\bNOT VALID$/i, brief('SHARE ROW EXCLUSIVE')],
  [/^ADD (CONSTRAINT \S+ )?(UNIQUE|PRIMARY KEY) USING INDEX\b/i, brief('ACCESS EXCLUSIVE')],
  [
    /^ADD (CONSTRAINT \S+ )?(CHECK|FOREIGN KEY|UNIQUE|PRIMARY KEY|EXCLUDE)\b/i,
    slow('ACCESS EXCLUSIVE', 'scan'),
  ],
  [/^VALIDATE CONSTRAINT\b/i, slow('SHARE UPDATE EXCLUSIVE', 'scan')],
  [
    /^(DROP CONSTRAINT|ALTER (COLUMN )?\S+ (SET|DROP) DEFAULT|ALTER (COLUMN )?\S+ DROP NOT NULL)\b/i,
    brief('ACCESS EXCLUSIVE'),
  ],
  [
    /^ALTER (COLUMN )?\S+ SET NOT NULL$/i,
    { ...slow('ACCESS EXCLUSIVE', 'scan'), breaks: 'the version before may leave it out' },
  ],
  [
    /^ALTER (COLUMN )?\S+ (SET DATA )?TYPE\b/i,
    { ...slow('ACCESS EXCLUSIVE', 'rewrite'), breaks: 'the version before writes the old type' },
  ],
  [/^ALTER (COLUMN )?\S+ SET (STORAGE|COMPRESSION)\b/i, brief('ACCESS EXCLUSIVE')],
  [/^(ALTER (COLUMN )?\S+ SET (STATISTICS|\()|(RE)?SET \()/i, brief('SHARE UPDATE EXCLUSIVE')],
  [/^DROP (COLUMN )?(IF EXISTS )?\S+/i, { ...brief('ACCESS EXCLUSIVE'), breaks: dropped }],
  [/^RENAME\b/i, { ...brief('ACCESS EXCLUSIVE'), breaks: dropped }],
];

/** Other statements on an existing table. The group `table` of the expression is its name. */
const statements: readonly Rule[] = [
  [
    /^CREATE (UNIQUE )?INDEX CONCURRENTLY .*?\bON (ONLY )?(?<table>[\w."]+)/i,
    { ...slow('SHARE UPDATE EXCLUSIVE', 'scan'), isConcurrent: true },
  ],
  [/^CREATE (UNIQUE )?INDEX .*?\bON (ONLY )?(?<table>[\w."]+)/i, slow('SHARE', 'scan')],
  [/^DROP INDEX CONCURRENTLY\b/i, { ...brief('SHARE UPDATE EXCLUSIVE'), isConcurrent: true }],
  [/^DROP INDEX\b/i, brief('ACCESS EXCLUSIVE')],
  [
    /^DROP (TABLE|VIEW|MATERIALIZED VIEW|FUNCTION|TYPE|SEQUENCE|TRIGGER)\b/i,
    { ...brief('ACCESS EXCLUSIVE'), breaks: dropped },
  ],
  [
    /^TRUNCATE (TABLE )?(?<table>[\w."]+)/i,
    { ...brief('ACCESS EXCLUSIVE'), breaks: 'it deletes data' },
  ],
  [/^(UPDATE|DELETE FROM) (ONLY )?(?<table>[\w."]+)/i, slow('ROW EXCLUSIVE', 'rows')],
  [/^INSERT INTO (?<table>[\w."]+).*\bSELECT\b/i, slow('ROW EXCLUSIVE', 'rows')],
  [/^INSERT INTO (?<table>[\w."]+)/i, brief('ROW EXCLUSIVE')],
  [/^CREATE (OR REPLACE )?TRIGGER .*? ON (?<table>[\w."]+)/i, brief('SHARE ROW EXCLUSIVE')],
  [
    /^CREATE (OR REPLACE )?(FUNCTION|VIEW|TYPE|SEQUENCE|EXTENSION|STATISTICS|SCHEMA)\b/i,
    brief('none'),
  ],
  [/^ANALYZE (?<table>[\w."]+)/i, brief('SHARE UPDATE EXCLUSIVE')],
  [/^(COMMENT ON|ALTER SEQUENCE)\b/i, brief('none')],
];

function brief(lock: LockMode) {
  return { lock, cost: 'catalogue' } as const;
}

function slow(lock: LockMode, cost: Cost) {
  return { lock, cost };
}

/** Returns the effect of a statement that `splitStatements` returned. */
export function effectOf(statement: string): Effect {
  const created = /^CREATE (UNLOGGED )?TABLE (IF NOT EXISTS )?(?<table>[\w."]+)/i.exec(statement)
    ?.groups?.table;
  const parent = /\bPARTITION OF (?<table>[\w."]+)/i.exec(statement)?.groups?.table;
  if (created !== undefined)
    return {
      creates: created,
      table: parent,
      lock: parent === undefined ? 'none' : 'SHARE UPDATE EXCLUSIVE',
      cost: 'catalogue',
      isKnown: true,
    };
  const altered = /^ALTER TABLE (IF EXISTS )?(ONLY )?(?<table>[\w."]+) (?<actions>.*)$/i.exec(
    statement,
  )?.groups;
  if (altered)
    return {
      ...strongest(splitSql(altered.actions ?? '', ',').map(actionEffect)),
      table: altered.table,
    };
  return matched(statements, statement);
}

function actionEffect(action: string): Effect {
  return /^ADD (?!CONSTRAINT|CHECK|FOREIGN|UNIQUE|PRIMARY|EXCLUDE)/i.test(action)
    ? newColumnEffect(action)
    : matched(actions, action);
}

function newColumnEffect(action: string): Effect {
  const isRequired = /\bNOT NULL\b/i.test(action) && !/\bDEFAULT\b/i.test(action);
  const isChecked = /\b(CHECK|REFERENCES|UNIQUE|PRIMARY KEY)\b/i.test(action);
  return {
    lock: 'ACCESS EXCLUSIVE',
    cost: volatileDefault.test(action) ? 'rewrite' : isChecked ? 'scan' : 'catalogue',
    ...(isRequired ? { breaks: 'the version before does not fill it' } : {}),
    isKnown: true,
  };
}

function matched(rules: readonly Rule[], text: string): Effect {
  for (const [pattern, effect] of rules) {
    const match = pattern.exec(text);
    if (match) return { ...effect, table: match.groups?.table, isKnown: true };
  }
  return { lock: 'ACCESS EXCLUSIVE', cost: 'rewrite', isKnown: false };
}

const costs: readonly Cost[] = ['catalogue', 'rows', 'scan', 'rewrite'];
const locks: readonly LockMode[] = [
  'none',
  'ROW EXCLUSIVE',
  'SHARE UPDATE EXCLUSIVE',
  'SHARE',
  'SHARE ROW EXCLUSIVE',
  'ACCESS EXCLUSIVE',
];

/**
 * Combines the effects of the actions of one statement: the strongest lock and the longest work.
 */
function strongest(effects: Effect[]): Effect {
  const breaks = effects.find((effect) => effect.breaks !== undefined)?.breaks;
  return {
    lock:
      locks.findLast((lock) => effects.some((effect) => effect.lock === lock)) ??
      'ACCESS EXCLUSIVE',
    cost: costs.findLast((cost) => effects.some((effect) => effect.cost === cost)) ?? 'rewrite',
    ...(breaks === undefined ? {} : { breaks }),
    isKnown: effects.every(({ isKnown }) => isKnown),
  };
}
