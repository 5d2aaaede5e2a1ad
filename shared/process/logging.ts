import { type DestinationStream, type Logger, pino } from 'pino';
import { sleep } from '../clock.ts';

export type { Logger };

/** Members that the logger redacts, one or two levels deep. */
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
 * Members of an error that are logged beside name, message and stack. All others stay out: database
 * errors carry SQL, row values and the whole client with its password.
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

/** Limits of nested errors in a log line; they also end cycles. */
const maxDepth = 4;
const maxErrors = 5;

function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error))
    return typeof error === 'object' && error !== null ? '(thrown, but no error)' : error;
  const plain: Record<string, unknown> = {
    type: error.name,
    message: error.message,
    stack: error.stack,
  };
  for (const [key, value] of Object.entries(error))
    if (errorMembers.includes(key)) plain[key] = value;
  if (depth === maxDepth) return plain;
  if (error.cause !== undefined) plain.cause = describeError(error.cause, depth + 1);
  // Node reports a refused connection as one error per address.
  if (error instanceof AggregateError)
    plain.errors = error.errors.slice(0, maxErrors).map((one) => describeError(one, depth + 1));
  return plain;
}

const serialize = (error: unknown) => describeError(error);

export interface LoggerOptions {
  level: string;
  /** Name of the process: `api`, `dispatcher`, `up`, … */
  name: string;
  destination?: DestinationStream;
}

/** Buffer for standard output; further lines are dropped. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Opens standard output for asynchronous writes. A pipe without a reader (a pager, a hanging
 * collector) would otherwise block the process, and not even a signal would end it. A line that
 * cannot be written (a terminal that was closed, a full disk) is tried again with the next one, and
 * stops nothing.
 */
function standardOutput(): DestinationStream {
  // `flush` needs a minimum length.
  const output = pino.destination({ fd: 1, sync: false, minLength: 1, maxLength: maxWaitingBytes });
  output.on('error', () => undefined);
  // pino calls it for `fatal` and at the exit. It repeats a failing write without end, and blocks
  // on a pipe without a reader.
  output.flushSync = () => undefined;
  return output;
}

/** Time limit for writing the last lines of a process. */
const flushMs = 500;

/** Waits briefly for the log to be written; resolves with whether it was. */
export function isWritten(log: Logger): Promise<boolean> {
  const written = new Promise<boolean>((resolve) => log.flush(() => resolve(true)));
  return Promise.race([written, sleep(flushMs).then(() => false)]);
}

/**
 * Creates a logger that writes one JSON line per event to standard output. It redacts secrets
 * itself, so that no caller has to.
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
