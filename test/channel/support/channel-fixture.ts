import { randomBytes } from 'node:crypto';
import type { ChannelLimits } from '../../../api/channel/limits.ts';
import { freePort } from '../../../ops/local/ports.ts';
import type { Clock } from '../../../shared/clock.ts';
import { Database } from '../../../shared/db/pool.ts';
import { enqueueMessage } from '../../../shared/db/tables/channel-enqueue.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { insertDevices } from '../../support/tables.ts';

/** Api process whose public URL is its own address, so that its router returns this address. */
export interface ChannelApi extends TestApi {
  /** Address of the WebSocket. */
  channelUrl: string;
}

/** Database with one app and any number of api processes. */
export class ChannelFixture {
  readonly database: TestDatabase;
  readonly db: Database;
  appId = '';
  readonly #apis: ChannelApi[] = [];

  private constructor(database: TestDatabase) {
    this.database = database;
    this.db = new Database({ url: database.url, applicationName: 'test' });
  }

  static async create(): Promise<ChannelFixture> {
    return new ChannelFixture(await createTestDatabase());
  }

  async startApi(
    options: {
      clock?: Clock;
      env?: Record<string, string>;
      channelLimits?: Partial<ChannelLimits>;
    } = {},
  ): Promise<ChannelApi> {
    const port = await freePort();
    const api = await startTestApi({
      ...options,
      databaseUrl: this.database.url,
      env: { PORT: String(port), PUBLIC_URL: `http://127.0.0.1:${port}`, ...options.env },
    });
    if (this.appId === '') this.appId = (await api.createApp()).appId;
    this.#apis.push({ ...api, channelUrl: `ws://127.0.0.1:${port}/1.1/channel` });
    return this.#apis[this.#apis.length - 1] ?? missingRow();
  }

  /** Creates installations. Returns their internal ids. */
  async install(
    installationIds: string[],
    options: { valid?: boolean; updatedAt?: Date } = {},
  ): Promise<number[]> {
    const { valid = true, updatedAt = new Date() } = options;
    return insertDevices(
      this.db,
      this,
      installationIds.map((installationId) => ({
        deviceType: 'android',
        installationId,
        valid,
        updatedAt,
      })),
    );
  }

  /** Creates a push. Returns its internal id. */
  async push(): Promise<number> {
    const { rows } = await this.db.query<{ id: number }>(
      `INSERT INTO notification (app_id, object_id, notification_id, state, request, prod,
        push_time, expires_at)
       VALUES ($1, $2, $2, 'sending', '{}', 'prod', now(), now() + interval '7 days') RETURNING id`,
      [this.appId, randomBytes(8).toString('hex')],
    );
    return rows[0]?.id ?? missingRow();
  }

  /** Enqueues a message of a push for each installation. Returns the id of the push. */
  async enqueue(
    installations: number[],
    content: JsonObject = { alert: 'hello' },
    options: { pushId?: number; expiresAt?: Date } = {},
  ): Promise<number> {
    const pushId = options.pushId ?? (await this.push());
    const expiresAt = options.expiresAt ?? new Date(Date.now() + 3_600_000);
    await enqueueMessage(this.db, { appId: this.appId, pushId, content, expiresAt, installations });
    return pushId;
  }

  /** Returns the number of acknowledgements of a push. */
  async ackedOf(pushId: number): Promise<number> {
    const { rows } = await this.db.query<{ acked: number }>(
      'SELECT acked FROM notification WHERE id = $1',
      [pushId],
    );
    return rows[0]?.acked ?? missingRow();
  }

  async drop(): Promise<void> {
    await Promise.all(this.#apis.map((api) => api.close()));
    await this.db.close();
    await this.database.drop();
  }
}

function missingRow(): never {
  throw new Error('the database returned no row');
}

/** Polls a condition until it is true. */
export async function eventually(
  holds: () => Promise<boolean> | boolean,
  withinMs = 10_000,
): Promise<void> {
  const endsAtMs = performance.now() + withinMs;
  while (!(await holds())) {
    if (performance.now() > endsAtMs) throw new Error('the condition never held');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
