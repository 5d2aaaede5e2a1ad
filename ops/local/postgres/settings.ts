import { totalmem } from 'node:os';

const MEGABYTE = 1024 * 1024;

/** Returns the memory that this process may use, in megabytes: the machine's, or the container's limit. */
export function availableMemoryMb(): number {
  const limitBytes = process.constrainedMemory();
  // 0 and extremely large numbers both mean that there is no limit.
  const usableBytes = limitBytes > 0 ? Math.min(limitBytes, totalmem()) : totalmem();
  return Math.floor(usableBytes / MEGABYTE);
}

/** Bytes that a statement may free without a return of the memory to the kernel. */
const keptBytes = String(16 * MEGABYTE);

/**
 * Variables of glibc for the server. By default each statement that reads a batch of a push returns its memory at its end, and the
 * kernel maps and clears it for the next one: 165,000 page faults per million recipients, a fifth to a third of the server's processor
 * time. A connection keeps at most what its largest statement took, about 3 MB more (operate/sizing.md#postgresql-on-linux).
 */
export const serverVariables: Readonly<Record<string, string>> = {
  MALLOC_TRIM_THRESHOLD_: keptBytes,
  MALLOC_MMAP_THRESHOLD_: keptBytes,
};

/**
 * Returns the server's settings for `memoryMb`. Reads are 1.5 to 2 times faster than with the defaults.
 *
 * @param durable true: a commit is on disk before the server confirms it, which accepted pushes need. false is for tests.
 */
export function serverSettings(memoryMb: number, durable: boolean): Record<string, string> {
  const settings: Record<string, string> = {
    // No TCP: the binaries lag behind security releases, and the socket's folder is closed to others.
    listen_addresses: '',
    port: '5432',
    // Tests run several fleets of dispatchers on one server.
    max_connections: durable ? '200' : '400',
    shared_buffers: megabytes(memoryMb / 8, 32, 1024),
    effective_cache_size: megabytes(memoryMb / 2, 64, 1024 * 1024),
    maintenance_work_mem: megabytes(memoryMb / 32, 32, 512),
    work_mem: megabytes(memoryMb / 256, 4, 32),
    max_wal_size: megabytes(memoryMb / 4, 512, 4096),
    min_wal_size: megabytes(memoryMb / 32, 80, 512),
    checkpoint_completion_target: '0.9',
    wal_compression: 'on',
    // For a hot standby.
    wal_level: 'replica',
    max_wal_senders: '10',
    // For solid-state disks and many short statements: JIT compilation costs more than it saves.
    random_page_cost: '1.1',
    jit: 'off',
    // All rows of queue tables change within minutes.
    autovacuum_naptime: '15s',
    autovacuum_vacuum_cost_limit: '2000',
    timezone: 'UTC',
    log_timezone: 'UTC',
    log_line_prefix: '',
    synchronous_commit: 'on',
  };
  if (!durable) Object.assign(settings, { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' });
  return settings;
}

function megabytes(wanted: number, least: number, most: number): string {
  return `${Math.round(Math.min(Math.max(wanted, least), most))}MB`;
}
