import { type DestinationStream, type Logger, pino } from 'pino';
import { sleep } from '../clock.ts';

export type { Logger };

/** Members whose values never reach a log, wherever they occur one or two levels deep. */
const secretMembers = [
  'authorization',
  'password',
  'token',
  'deviceToken',
  'registrationId',
  'sessionToken',
  'masterKey',
  'appKey',
  'hookKey',
  'secret',
  'privateKey',
  'credentials',
  'mobilePhoneNumber',
  'email',
  'connectionString',
];

const redacted = [
  ...secretMembers,
  ...secretMembers.map((name) => `*.${name}`),
  ...secretMembers.map((name) => `*.*.${name}`),
];

/**
 * What of an error is logged beside name, message and stack. Everything else stays out: database errors
 * carry SQL, row values and the whole client with its password.
 */
const errorMembers = [
  'code',
  'kind',
  'severity',
  'constraint',
  'table',
  'errno',
  'syscall',
  'address',
  'port',
  'status',
];

/** Errors inside errors, followed this deep and this wide: enough to read, and an end to a circle. */
const maxDepth = 4;
const maxErrors = 5;

function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error))
    return typeof error === 'object' && error !== null ? '(thrown, but no error)' : error;
  const plain: Record<string, unknown> = { type: error.name, message: error.message, stack: error.stack };
  for (const [key, value] of Object.entries(error)) if (errorMembers.includes(key)) plain[key] = value;
  if (depth === maxDepth) return plain;
  if (error.cause !== undefined) plain.cause = describeError(error.cause, depth + 1);
  // Node tells of a refused connection as one error per address that was tried.
  if (error instanceof AggregateError)
    plain.errors = error.errors.slice(0, maxErrors).map((one) => describeError(one, depth + 1));
  return plain;
}

const serialize = (error: unknown) => describeError(error);

export interface LoggerOptions {
  level: string;
  /** Which process writes: `api`, `dispatcher`, `up`, … */
  name: string;
  destination?: DestinationStream;
}

/** What waits for a reader of standard output; beyond it lines are lost, and nothing else. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Standard output, written without waiting for it: a pipe that nobody reads any more (a pager, a collector that
 * hangs) would otherwise stop the whole process in the middle of its work, so that not even a signal ends it.
 */
function standardOutput(): DestinationStream {
  // A least length, since only then can be asked whether all has been written.
  return pino.destination({ fd: 1, sync: false, minLength: 1, maxLength: maxWaitingBytes });
}

/** How long the last lines of a process may take. */
const flushMs = 500;

/** Whether everything logged has been written, waiting a moment for it. */
export function isWritten(log: Logger): Promise<boolean> {
  const written = new Promise<boolean>((resolve) => log.flush(() => resolve(true)));
  return Promise.race([written, sleep(flushMs).then(() => false)]);
}

/**
 * One JSON line per event on standard output. Secrets are taken out here, by the logger, so that no
 * caller has to remember it (style.md section 4).
 */
export function createLogger(options: LoggerOptions): Logger {
  const settings = {
    level: options.level,
    name: options.name,
    redact: { paths: redacted, censor: '[hidden]' },
    serializers: { err: serialize, error: serialize },
    formatters: { level: (label: string) => ({ level: label }) },
    timestamp: pino.stdTimeFunctions.isoTime,
  };
  return pino(settings, options.destination ?? standardOutput());
}
