import { z } from 'zod';
import { type LocalConfig, readLocalConfig } from '../../shared/config/config.ts';
import { parseExactly } from '../../shared/domain/json.ts';
import { isPathPart, pathPart } from '../../shared/domain/path.ts';
import { readRunInfo } from '../local/run-info.ts';
import { readSecrets } from '../local/secrets.ts';
import { language } from './language.ts';
import { CommandFailure, UsageError } from './report.ts';

/** Timeout longer than the slowest call of the api (which ends a query after 30 s). */
const callTimeoutMs = 40_000;

/** Address and token of a service on this machine, or of the one in the environment. */
export interface ServiceAccess {
  url: string;
  adminToken: string | undefined;
  dataDir: string;
}

/**
 * Finds the service: `PUBLIC_URL` or `PORT`, else the run info in the data directory of this folder, else port 8080; the
 * admin token likewise (protocol/operation.md#environment).
 */
export async function findService(config: LocalConfig = readLocalConfig()): Promise<ServiceAccess> {
  const [runInfo, secrets] = await Promise.all([
    readRunInfo(config.dataDir),
    readSecrets(config.dataDir, { adminToken: config.adminToken }),
  ]);
  return {
    url: config.publicUrl ?? runInfo.url ?? 'http://127.0.0.1:8080',
    adminToken: secrets.adminToken,
    dataDir: config.dataDir,
  };
}

const errorReply = z.object({ code: z.number(), error: z.string() });

/**
 * Encodes an id or a name as a part of a path. Throws `UsageError` for one that would change the
 * path, such as `..`.
 */
export function part(text: string): string {
  if (!isPathPart(text)) throw new UsageError(`${JSON.stringify(text)} is neither an id nor a name`);
  return pathPart(text);
}

/** App with the keys for calls on its behalf. */
export const appReply = z.looseObject({
  appId: z.string(),
  name: z.string(),
  edition: z.string(),
  plan: z.string(),
  appKey: z.string(),
  masterKey: z.string(),
  hookKey: z.string(),
  options: z.record(z.string(), z.unknown()),
});
export type AppReply = z.infer<typeof appReply>;

/** Client of the admin API. Every failure is a `CommandFailure`. */
export class ServiceClient {
  readonly #access: ServiceAccess;

  constructor(access: ServiceAccess) {
    this.#access = access;
  }

  /** Calls the admin API; `path` follows `/console/api`. */
  admin(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    const { adminToken, dataDir } = this.#access;
    if (adminToken === undefined)
      throw new CommandFailure(
        `There is no admin token: set CARILLON_ADMIN_TOKEN, or run this in the folder where \`npm start\` created ${dataDir}.`,
      );
    const all = { 'Accept-Language': language(), ...headers, Authorization: `Bearer ${adminToken}` };
    return this.#call(method, `/console/api${path}`, all, body);
  }

  async app(appId: string): Promise<AppReply> {
    return appReply.parse(await this.admin('GET', `/apps/${part(appId)}`));
  }

  async apps(): Promise<AppReply[]> {
    return z.object({ results: z.array(appReply) }).parse(await this.admin('GET', '/apps')).results;
  }

  async #call(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: unknown,
  ): Promise<unknown> {
    const { url } = this.#access;
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      redirect: 'error',
      signal: AbortSignal.timeout(callTimeoutMs),
    }).catch((error: unknown) => {
      throw new CommandFailure(unreachable(url, error));
    });
    return readReply(url, response);
  }
}

async function readReply(url: string, response: Response): Promise<unknown> {
  const text = await response.text();
  const value = parseJson(text);
  if (response.ok && value !== undefined) return value;
  const refused = errorReply.safeParse(value);
  if (!refused.success) throw new CommandFailure(`What answers at ${url} is not Carillon.`);
  const advice = response.status === 401 ? ' The admin token is not the one of this service.' : '';
  throw new CommandFailure(`${refused.data.error}${advice}`, refused.data.code);
}

function parseJson(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return undefined;
  }
}

function unreachable(url: string, error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `The service at ${url} did not answer within ${callTimeoutMs / 1000} s.`;
  return `No service answers at ${url}: start one with \`npm start\`, or name another with PUBLIC_URL or PORT.`;
}

/** Creates a client for the service that `findService` finds. */
export async function connect(): Promise<ServiceClient> {
  return new ServiceClient(await findService());
}

const appIds = z.object({ results: z.array(z.looseObject({ appId: z.string() })) });

/**
 * Returns the id of the given app, or of the only one; a token below owner gets no keys, and needs none here. Throws
 * `UsageError`.
 */
export async function chooseAppId(service: ServiceClient, appId: string | undefined): Promise<string> {
  if (appId !== undefined) return appId;
  const [only, ...others] = appIds.parse(await service.admin('GET', '/apps?view=list&limit=2')).results;
  if (!only) throw new UsageError('there is no app yet: make one with `carillon app create <name>`');
  if (others.length > 0)
    throw new UsageError('say which app: --app <appId> (`carillon app list` shows them)');
  return only.appId;
}

const deviceIds = z.object({ results: z.array(z.looseObject({ objectId: z.string() })) });

/**
 * Returns an id of a device as a part of a path. Tokens of some vendors contain slashes, so that
 * they are replaced by the objectId.
 */
export async function devicePart(service: ServiceClient, appId: string, id: string): Promise<string> {
  if (isPathPart(id)) return pathPart(id);
  const query = new URLSearchParams({ q: id, limit: '1' });
  const found = deviceIds.parse(await service.admin('GET', `/apps/${part(appId)}/installations?${query}`));
  return part(found.results[0]?.objectId ?? id);
}
