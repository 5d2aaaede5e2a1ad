import type { App } from '../../../../shared/domain/apps/app.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import {
  type AuthDataChanges,
  anonymous,
  requireToken,
  unionOf,
} from '../../../../shared/domain/users/auth-data.ts';
import {
  checkOf,
  isIdentityTokenPlatform,
  type PlatformCheck,
  type PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import type { ApiDeps } from '../../deps.ts';
import { checkAccessToken } from './access-tokens.ts';
import { IdentityTokens } from './identity-tokens.ts';
import { PlatformClients } from './platform-clients.ts';

/**
 * Whether third-party authorization data is true, for the platforms that an app configures (protocol/users.md#checked-platforms,
 * protocol/admin-api.md#platform-checks). Every platform of a request is checked: none rides on another (protocol/known-problems.md#authdata-bypass).
 */
export class AuthPlatforms {
  readonly #clients: PlatformClients;
  readonly #identityTokens: IdentityTokens;

  constructor(deps: Pick<ApiDeps, 'clock'>) {
    this.#clients = new PlatformClients(deps.clock);
    this.#identityTokens = new IdentityTokens(this.#clients, deps.clock);
  }

  /**
   * Throws 250 to 252 when a platform does not vouch for its entry, or the app's options say of no way to check one that
   * must be checked; 503 when it cannot be asked.
   */
  async check(app: App, changes: AuthDataChanges): Promise<void> {
    const { authPlatforms } = app.options;
    const isChecking = Object.keys(authPlatforms).length > 0;
    await Promise.all(
      [...changes].map(async ([platform, entry]) => {
        if (entry === null) return;
        requireToken(platform, entry);
        const check = checkOf(authPlatforms, platform);
        if (!check) requireUncheckedAllowed(app, platform, entry);
        const vouched = check && (await this.#confirm(platform, entry, check));
        // Where tokens are checked, nobody is found by a UnionID that is only claimed.
        if (isChecking && unionOf(entry) && vouched?.unionid !== entry.unionid)
          throw refuse('invalidLinkedSession', 'The UnionID could not be confirmed: invalid authData.');
      }),
    );
  }

  async #confirm(
    platform: string,
    entry: JsonObject,
    check: PlatformCheck | 'unusable',
  ): Promise<PlatformConfirmation> {
    const vouched =
      check === 'unusable'
        ? undefined
        : check.kind === 'identity'
          ? await this.#identityTokens.check(entry, check.settings)
          : await checkAccessToken(this.#clients, { platform: check.kind, entry, settings: check.settings });
    if (!vouched) throw refuse(platform === 'weixin' ? 'invalidWeixinSession' : 'invalidLinkedSession');
    return vouched;
  }

  close(): Promise<void> {
    return this.#clients.close();
  }
}

/**
 * Throws 251 for an entry of a platform that `authPlatforms` does not name and that must be checked: one with an identity
 * token in place of an access token, and every one where the app lets in checked platforms only.
 */
function requireUncheckedAllowed({ options }: App, platform: string, entry: JsonObject): void {
  if (platform === anonymous) return;
  const hasIdentityToken = isIdentityTokenPlatform(platform) || !entry.access_token;
  if (hasIdentityToken)
    throw refuse(
      'invalidLinkedSession',
      `Accounts of ${platform} are refused until the option authPlatforms of the app says how its identity tokens are verified.`,
    );
  if (options.checkedPlatformsOnly)
    throw refuse(
      'invalidLinkedSession',
      `Accounts of ${platform} are refused: the app has the option checkedPlatformsOnly, and its option authPlatforms does not name the platform.`,
    );
}
