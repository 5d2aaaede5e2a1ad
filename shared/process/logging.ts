import { type DestinationStream, type Logger, pino } from 'pino';
import { isDoneWithin } from '../clock.ts';

export type { Logger };

/** Members that the logger redacts, up to two levels deep. */
const secretMembers = [
  'authorization',
  'password',
  'token',
  'deviceToken',
  'registrationId',
  'subscription',
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
  'callbackUrl',
  'receiptUrl',
];

const redacted = [
  ...secretMembers,
  ...secretMembers.map((name) => `*.${name}`),
  ...secretMembers.map((name) => `*.*.${name}`),
];

/**
 * Members of an error that are logged in addition to name, message and stack. Other members are not
 * logged: database errors contain SQL, row values and the whole client with its password.
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

/** Limits for nested errors in a log line. They also end cycles. */
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
  // Node.js reports a refused connection as one error per address.
  if (error instanceof AggregateError)
    plain.errors = error.errors.slice(0, maxErrors).map((one) => describeError(one, depth + 1));
  return plain;
}

const serialize = (error: unknown) => describeError(error);

export interface LoggerOptions {
  level: string;
  /** Name of the process, such as `api`, `dispatcher` or `up`. */
  name: string;
  destination?: DestinationStream;
}

/** Buffer size for standard output. If the buffer is full, lines are dropped. */
const maxWaitingBytes = 4 * 1024 * 1024;

/**
 * Opens standard output for asynchronous writes. If a pipe has no reader (a pager, a hanging
 * collector), synchronous writes would block the process, even for signals. A line that cannot be
 * written (closed terminal, full disk) is retried with the next line.
 */
function standardOutput(): DestinationStream {
  // Without a minimum length, `flush` does nothing.
  const output = pino.destination({ fd: 1, sync: false, minLength: 1, maxLength: maxWaitingBytes });
  output.on('error', () => undefined);
  // pino calls `flushSync` for `fatal` and at exit. It would repeat a failing write endlessly, and
  // block if a pipe has no reader.
  output.flushSync = () => undefined;
  return output;
}

/** Timeout for writing the last lines of a process. */
const flushMs = 500;

/** Waits briefly until the log is written. Resolves to true if it was written. */
export function isWritten(log: Logger): Promise<boolean> {
  const written = new Promise<void>((resolve) => log.flush(() => resolve()));
  return isDoneWithin(written, flushMs);
}

/**
 * Creates a logger that writes one JSON line per event to standard output. It redacts secrets, so
 * callers need not do so.
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
