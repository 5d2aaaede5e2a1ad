import { Readable } from 'node:stream';
import { isDoneWithin } from '../../../../shared/clock.ts';
import { Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { Poller, type Topic } from './poller.ts';

/** Time after which a browser reconnects. */
const retryMs = 2000;

/**
 * Body of `text/event-stream`. For a slow reader, it keeps only the newest event of each topic. A
 * reader therefore uses a limited amount of memory.
 */
class EventStream extends Readable {
  readonly #waiting = new Map<string, string | Buffer>();
  #isWanted = false;
  #isEnding = false;

  constructor() {
    super({ highWaterMark: 64 * 1024 });
    this.send('retry', `retry: ${retryMs}\n\n`);
  }

  /**
   * Sends an event. Replaces an earlier event of the topic that is not sent yet. All streams may
   * share the bytes.
   */
  send(topic: string, text: string | Buffer): void {
    if (this.#isEnding || this.destroyed) return;
    this.#waiting.delete(topic);
    this.#waiting.set(topic, text);
    if (this.#isWanted) this.#flush();
  }

  /** Sends a comment, so that proxies keep the connection open. */
  beat(): void {
    this.send('beat', ':\n\n');
  }

  /** Sends the reason and ends the stream. */
  endWith(reason: string): void {
    this.send('bye', `event: bye\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.#isEnding = true;
    if (this.#isWanted) this.#flush();
  }

  override _read(): void {
    this.#isWanted = true;
    this.#flush();
  }

  #flush(): void {
    for (const [topic, text] of this.#waiting) {
      this.#waiting.delete(topic);
      this.#isWanted = this.push(text);
      if (!this.#isWanted) return;
    }
    if (this.#isEnding) this.push(null);
  }
}

/** Limits of live updates in one process. Tests use smaller limits. */
interface EventLimits {
  /** Maximum number of open streams in total, and per token including its sessions. */
  streams: number;
  streamsPerToken: number;
  /** Maximum number of topics per stream, per token, and in total. */
  topicsPerStream: number;
  topicsPerToken: number;
  topics: number;
  /** Intervals of comments, and of the check that the caller still has access. */
  beatMs: number;
  checkMs: number;
  /** Time for readers to receive the end when the process stops. */
  lingerMs: number;
}

const eventLimits: EventLimits = {
  streams: 500,
  streamsPerToken: 50,
  topicsPerStream: 10,
  topicsPerToken: 50,
  topics: 200,
  beatMs: 15_000,
  checkMs: 5000,
  lingerMs: 1000,
};

/** Caller of a stream. */
interface Watcher {
  /** Session or token that has access. */
  key: string;
  /** Token of the caller, or of the caller's session. Limits count per token. */
  token: string;
  /** Returns whether the session or token is still valid. */
  hasAccess(): Promise<boolean>;
}

interface OpenStream {
  stream: EventStream;
  watcher: Watcher;
  topics: readonly Topic[];
}

const retryAfterSeconds = 10;

/**
 * Live updates (protocol/admin-api.md#live-updates). All streams of the process share one poller
 * per topic. Polling stops when nobody listens.
 */
export class EventHub {
  readonly #limits: EventLimits;
  readonly #pollers = new Map<string, Poller>();
  readonly #streams = new Set<OpenStream>();
  readonly #timers: NodeJS.Timeout[] = [];
  #lastId = 0;
  #isClosed = false;

  constructor(limits: Partial<EventLimits> = {}) {
    this.#limits = { ...eventLimits, ...limits };
  }

  /** Number of topics that are polled. */
  get polled(): number {
    return this.#pollers.size;
  }

  /** Returns whether a topic is polled. If so, its subject exists. */
  isPolled(key: string): boolean {
    return this.#pollers.has(key);
  }

  /**
   * Opens a stream of topics. Throws error 400 if there are too many topics, error 429 if there are
   * too many streams, error 503 if the process stops.
   */
  open(topics: readonly Topic[], watcher: Watcher): EventStream {
    this.#admit(topics, watcher);
    const stream = new EventStream();
    const open = { stream, watcher, topics };
    const deliver = (topic: string, bytes: Buffer) => stream.send(topic, bytes);
    this.#streams.add(open);
    for (const topic of topics) this.#pollerOf(topic).add(deliver);
    stream.once('close', () => {
      this.#streams.delete(open);
      for (const { key } of topics)
        if (this.#pollers.get(key)?.remove(deliver)) this.#pollers.delete(key);
      if (this.#streams.size === 0) this.#stopTimers();
    });
    this.#startTimers();
    return stream;
  }

  /**
   * Ends the streams whose callers have lost access. Called when a session or token ends, and at
   * intervals.
   */
  async recheck(): Promise<void> {
    // The tabs of one session or token share a check.
    const byCaller = Map.groupBy(this.#streams, ({ watcher }) => watcher.key);
    await Promise.all(
      [...byCaller.values()].map(async (streams) => {
        // If the database is unavailable, the streams stay open until the next check.
        const hasAccess = (await streams[0]?.watcher.hasAccess().catch(() => true)) ?? true;
        if (!hasAccess) for (const { stream } of streams) stream.endWith('session');
      }),
    );
  }

  /**
   * Ends all streams, because the process stops and its server waits for open replies. Destroys
   * streams that nobody reads.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTimers();
    const streams = [...this.#streams].map(({ stream }) => stream);
    const ended = streams.map((stream) => new Promise((resolve) => stream.once('close', resolve)));
    for (const stream of streams) stream.endWith('restart');
    await isDoneWithin(Promise.all(ended), this.#limits.lingerMs);
    for (const stream of streams) stream.destroy();
    await Promise.all(ended);
  }

  #admit(topics: readonly Topic[], { token }: Watcher): void {
    const { streams, streamsPerToken, topicsPerStream, topicsPerToken } = this.#limits;
    if (this.#isClosed) throw new Refusal('unavailable', { retryAfterSeconds: 1 });
    if (topics.length > topicsPerStream)
      throw refuse('invalidParameter', detail('tooManyTopics', { n: topicsPerStream }));
    const own = [...this.#streams].filter(({ watcher }) => watcher.token === token);
    const ownTopics = new Set(
      [...own.flatMap((open) => open.topics), ...topics].map(({ key }) => key),
    );
    const added = topics.filter((topic) => !this.#pollers.has(topic.key)).length;
    const isFull =
      this.#streams.size >= streams || this.#pollers.size + added > this.#limits.topics;
    if (isFull || own.length >= streamsPerToken || ownTopics.size > topicsPerToken)
      throw new Refusal('tooManyRequests', { retryAfterSeconds });
  }

  #pollerOf(topic: Topic): Poller {
    const existing = this.#pollers.get(topic.key);
    if (existing) return existing;
    const poller = new Poller(topic, () => ++this.#lastId);
    this.#pollers.set(topic.key, poller);
    return poller;
  }

  #startTimers(): void {
    if (this.#timers.length > 0) return;
    const { beatMs, checkMs } = this.#limits;
    const beat = setInterval(() => {
      for (const { stream } of this.#streams) stream.beat();
    }, beatMs);
    const check = setInterval(() => void this.recheck(), checkMs);
    this.#timers.push(beat.unref(), check.unref());
  }

  #stopTimers(): void {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }
}
