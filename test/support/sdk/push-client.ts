import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import type { App } from '../../../shared/domain/apps/app.ts';

/** Fixed host of the client's router. No option changes it. */
const routerHost = 'router-g0-push.leancloud.cn';

/**
 * Forward proxy for clients with fixed addresses. It connects every host name to one api, with TLS
 * from its own CA. Clients use it through HTTPS_PROXY.
 */
export interface FixedAddresses {
  url: string;
  /** File of the CA certificate. */
  caFile: string;
  /** Requested addresses, as `host:port`. */
  proxiedHosts: Set<string>;
  close(): void;
}

export async function startFixedAddresses(
  folder: string,
  { host, apiPort }: { host: string; apiPort: number },
): Promise<FixedAddresses> {
  const authority = await openCertificateAuthority();
  const { certificate, privateKey } = await authority.issueServer([host, routerHost]);
  const caFile = join(folder, 'ca.pem');
  await writeFile(caFile, authority.certificate);
  const sockets = new Set<Socket>();
  const joined = (a: Socket, b: Socket) => {
    for (const end of [a, b])
      sockets.add(end.on('error', () => [a, b].map((one) => one.destroy())));
    a.pipe(b).pipe(a);
  };
  const front = createTlsServer({ cert: certificate, key: privateKey }, (socket) =>
    joined(socket, connect(apiPort, '127.0.0.1')),
  );
  const proxiedHosts = new Set<string>();
  const proxy: Server = createServer().on('connect', (request, socket: Socket) => {
    proxiedHosts.add(request.url ?? '');
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    joined(socket, connect(portIn(front.address()), '127.0.0.1'));
  });
  for (const server of [front, proxy])
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${portIn(proxy.address())}`,
    caFile,
    proxiedHosts,
    close() {
      for (const socket of sockets) socket.destroy();
      front.close();
      proxy.close();
    },
  };
}

function portIn(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('it does not listen');
  return address.port;
}

/** Message of the client: an emitted event or the result of a call. */
interface ClientMessage {
  event?: string;
  call?: string;
  // Free-form JSON, and tests assert on it.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  [member: string]: any;
}

/** Running `leancloud-push`. */
export class PushClient {
  readonly messages: ClientMessage[] = [];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message: ClientMessage) => this.messages.push(message));
  }

  static async start(
    app: App,
    { at, host, installationId }: { at: FixedAddresses; host: string; installationId: string },
  ): Promise<PushClient> {
    const child = fork(fileURLToPath(new URL('push-client.cjs', import.meta.url)), {
      // Its old libraries cause Node warnings.
      execArgv: ['--no-deprecation'],
      env: {
        PATH: process.env.PATH,
        HTTPS_PROXY: at.url,
        NODE_EXTRA_CA_CERTS: at.caFile,
        APP_ID: app.appId,
        APP_KEY: app.appKey,
        HOST: host,
        INSTALLATION_ID: installationId,
      },
    });
    const client = new PushClient(child);
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    if (typeof first !== 'object') throw new Error(`the client ended with ${first}`);
    return client;
  }

  /** Returns the received events of one kind. */
  received = (event: string): unknown[] =>
    this.messages.filter((one) => one.event === event).map(({ value }) => value);

  /** Calls one of its methods. Returns the arguments of the callback. */
  async call(call: string, ...args: unknown[]): Promise<{ body: unknown; error: unknown }> {
    const before = this.messages.length;
    const answer = () => this.messages.slice(before).find((one) => one.call === call);
    this.#child.send({ call, args });
    await expect.poll(answer, { message: call, timeout: 20_000 }).toBeDefined();
    const { body, error } = answer() ?? {};
    return { body, error };
  }

  async close(): Promise<void> {
    this.#child.disconnect();
    await once(this.#child, 'exit');
  }
}
