import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Provider } from 'oidc-provider';

/** Person of the provider. The login form takes the name of a person as the login. */
interface Account {
  name?: string;
  email?: string;
  groups?: string | string[];
  roles?: string[];
}

interface ProviderOptions {
  redirectUri: string;
  accounts: Record<string, Account>;
  /** True if claims are given by the userinfo endpoint only. */
  isUserInfoOnly?: boolean;
  /** Method by which the client authenticates. `client_secret_basic` by default. */
  authMethod?: 'client_secret_basic' | 'client_secret_post';
  logoutUri?: string;
  /** Host of the issuer. A browser takes `localhost` and `127.0.0.1` as two sites. */
  host?: 'localhost' | '127.0.0.1';
}

export const oidcClient = { id: 'carillon', secret: 'a secret & more' };

/** A provider of OpenID Connect on loopback (oidc-provider), with login forms. */
export class TestOidcProvider {
  readonly provider: Provider;
  readonly issuer: string;
  readonly #server: Server;
  /** True to answer all requests with 503. */
  isDown = false;
  /** Paths of the requests. */
  readonly paths: string[] = [];

  private constructor(server: Server, issuer: string, options: ProviderOptions) {
    this.#server = server;
    this.issuer = issuer;
    this.provider = createProvider(issuer, options);
    const handle = this.provider.callback();
    server.on('request', (request, response) => {
      this.paths.push(request.url?.split('?')[0] ?? '');
      if (this.isDown) response.writeHead(503).end('down');
      else void handle(request, response);
    });
  }

  static async start(options: ProviderOptions): Promise<TestOidcProvider> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (typeof address !== 'object' || !address) throw new Error('no port');
    const { host = '127.0.0.1' } = options;
    return new TestOidcProvider(server, `http://${host}:${address.port}`, options);
  }

  /** Environment of an api that uses the provider. */
  environment(roles: object): Record<string, string> {
    return {
      OIDC_ISSUER: this.issuer,
      OIDC_CLIENT_ID: oidcClient.id,
      OIDC_CLIENT_SECRET: oidcClient.secret,
      OIDC_ROLES: JSON.stringify(roles),
    };
  }

  /** Ends the validity of a code, as its lifetime does. */
  async expire(code: string): Promise<void> {
    const found = await this.provider.AuthorizationCode.find(code);
    await found?.destroy();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function createProvider(issuer: string, options: ProviderOptions): Provider {
  const { accounts, redirectUri, isUserInfoOnly = false, logoutUri } = options;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: oidcClient.id,
        client_secret: oidcClient.secret,
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: logoutUri === undefined ? [] : [logoutUri],
        token_endpoint_auth_method: options.authMethod ?? 'client_secret_basic',
      },
    ],
    clientAuthMethods: [options.authMethod ?? 'client_secret_basic'],
    findAccount: (_ctx, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...accounts[id] }),
    }),
    scopes: ['openid', 'profile', 'email', 'groups'],
    claims: {
      openid: ['sub'],
      profile: ['name'],
      email: ['email'],
      groups: ['groups', 'roles'],
    },
    conformIdTokenClaims: isUserInfoOnly,
    cookies: { keys: ['a key of the test'] },
    pkce: { required: () => true },
    // Nobody is asked for a consent.
    loadExistingGrant: async (ctx) => {
      const { client, session, params } = ctx.oidc;
      const accountId = session?.accountId;
      if (!client || accountId === undefined) return undefined;
      const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId });
      grant.addOIDCScope(String(params?.scope));
      await grant.save();
      return grant;
    },
  });
  return provider;
}
