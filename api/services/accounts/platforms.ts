import type { App } from '../../../shared/domain/app.ts';
import { type AuthDataChanges, unionOf } from '../../../shared/domain/auth-data.ts';
import { checkOf, type PlatformCheck, type Vouched } from '../../../shared/domain/auth-platforms.ts';
import { refuse } from '../../../shared/domain/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { Means } from '../means.ts';
import { checkAccessToken } from './access-tokens.ts';
import { Doors } from './doors.ts';
import { IdentityTokens } from './identity-tokens.ts';

/**
 * Whether third-party authorization data is true, for the platforms that an app configures (accounts.md "authData" 2,
 * contract.md `authPlatforms`). Every platform of a request is checked: none rides on another (field.md 4.2).
 */
export class AuthPlatforms {
  readonly #doors: Doors;
  readonly #identityTokens: IdentityTokens;

  constructor(means: Pick<Means, 'clock'>) {
    this.#doors = new Doors(means.clock);
    this.#identityTokens = new IdentityTokens(this.#doors, means.clock);
  }

  /** Throws 250 to 252 when a platform does not vouch for its entry, 503 when it cannot be asked. */
  async check(app: App, changes: AuthDataChanges): Promise<void> {
    const { authPlatforms } = app.options;
    const isChecking = Object.keys(authPlatforms).length > 0;
    await Promise.all(
      [...changes].map(async ([platform, entry]) => {
        if (entry === null) return;
        const check = checkOf(authPlatforms, platform);
        const vouched = check && (await this.#ask(platform, entry, check));
        // Where tokens are checked, nobody is found by a UnionID that is only claimed.
        if (isChecking && unionOf(entry) && vouched?.unionid !== entry.unionid)
          throw refuse('invalidLinkedSession', 'The UnionID could not be confirmed: invalid authData.');
      }),
    );
  }

  async #ask(platform: string, entry: JsonObject, check: PlatformCheck | 'unusable'): Promise<Vouched> {
    const vouched =
      check === 'unusable'
        ? undefined
        : check.kind === 'identity'
          ? await this.#identityTokens.check(entry, check.settings)
          : await checkAccessToken(this.#doors, { platform: check.kind, entry, settings: check.settings });
    if (!vouched) throw refuse(platform === 'weixin' ? 'invalidWeixinSession' : 'invalidLinkedSession');
    return vouched;
  }

  close(): Promise<void> {
    return this.#doors.close();
  }
}
