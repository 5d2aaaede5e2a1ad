import { type LocalConfig, readLocalConfig } from '../../shared/config/config.ts';
import { parseExactly } from '../../shared/domain/json.ts';
import { isPathPart } from '../../shared/domain/path.ts';
import {
  type AdminRequest,
  adminBase,
  type Call,
  type CallInput,
  createCall,
  isRefused,
  type Operation,
  type Reply,
  type RequestParts,
} from '../client/client.ts';
import { readRunInfo, readSecrets } from '../local/data-files.ts';
import { language, say, sentences } from './language.ts';
import { CommandFailure, UsageError } from './report.ts';

/** Timeout. It is longer than the slowest call of the api, which ends a query after 30 s. */
const callTimeoutMs = 40_000;

/** Address and token of a service on this machine, or of the service in the environment. */
export interface ServiceAccess {
  url: string;
  adminToken: string | undefined;
  dataDir: string;
}

/**
 * Finds the service: `PUBLIC_URL` or `PORT`, otherwise the address in the data directory of this
 * folder, otherwise port 8080. Finds the admin token in the same way
 * (protocol/operation.md#environment).
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

/** App with its options. Owners also get its keys. */
export type ShownApp = Reply<'getApp'>;

/**
 * Client of the admin API. Throws `CommandFailure` if a call fails, and `WrongPathPart` for an id
 * that cannot be in a path.
 */
export class ServiceClient {
  readonly #access: ServiceAccess;
  /** Calls an operation by its name. */
  readonly call: Call = createCall((request) => this.#send(request));

  constructor(access: ServiceAccess) {
    this.#access = access;
  }

  /** Like `call`, for an operation and input that are known only at run time. */
  send<O extends Operation>(operation: O, parts: RequestParts): Promise<Reply<O>> {
    return this.call(operation, parts as CallInput<O>);
  }

  /**
   * Returns an id of a device that can be part of a path. Tokens of some vendors contain slashes.
   * They are replaced with the objectId.
   */
  async deviceId(appId: string, id: string): Promise<string> {
    if (isPathPart(id)) return id;
    const query = { q: id, limit: 1 };
    const { results } = await this.call('listAppInstallations', { path: { appId }, query });
    return results[0]?.objectId ?? id;
  }

  async #send({ method, path, body, headers }: AdminRequest): Promise<unknown> {
    const { url, adminToken, dataDir } = this.#access;
    if (adminToken === undefined)
      throw new CommandFailure(
        say(
          'There is no admin token: set CARILLON_ADMIN_TOKEN, or run this in the folder where `npm start` created {dataDir}.',
          { dataDir },
        ),
      );
    const response = await fetch(`${url}${adminBase}${path}`, {
      method,
      headers: {
        'Accept-Language': language(),
        ...headers,
        Authorization: `Bearer ${adminToken}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
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
  if (!isRefused(value))
    throw new CommandFailure(say('What answers at {url} is not Carillon.', { url }));
  const advice =
    response.status === 401 ? [say('The admin token is not the one of this service.')] : [];
  throw new CommandFailure(sentences(value.error, ...advice), value.code);
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
    return say('The service at {url} did not answer within {seconds} s.', {
      url,
      seconds: callTimeoutMs / 1000,
    });
  return say(
    'No service answers at {url}: start one with `npm start`, or name another with PUBLIC_URL or PORT.',
    { url },
  );
}

/** Creates a client for the service that `findService` finds. */
export async function connect(): Promise<ServiceClient> {
  return new ServiceClient(await findService());
}

/**
 * Returns the given app id, or the id of the only app. Lists the apps without keys, so that a token
 * below owner is sufficient. Throws `UsageError`.
 */
export async function chooseAppId(
  service: ServiceClient,
  appId: string | undefined,
): Promise<string> {
  if (appId !== undefined) return appId;
  const { results } = await service.call('listApps', { query: { view: 'list', limit: 2 } });
  const [only, ...others] = results;
  if (!only)
    throw new UsageError(say('there is no app yet: make one with `carillon app create <name>`'));
  if (others.length > 0)
    throw new UsageError(say('say which app: --app <appId> (`carillon app list` shows them)'));
  return only.appId;
}
