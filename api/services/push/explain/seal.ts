import { equalInConstantTime, sha256, type Vault } from '../../../../shared/crypto.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../../shared/domain/json.ts';

/** Body of a push that was explained. */
interface SealedBody {
  appId: string;
  body: JsonObject;
}

/**
 * Binds the number of a dry run to its body: `<devices>.<HMAC>` under CARILLON_SECRET. The server keeps nothing, so every api
 * process reads it, also after a restart.
 */
export class DryRunSeal {
  readonly #vault: Vault;

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  of(sealed: SealedBody, devices: number): string {
    return `${devices}.${this.#vault.derive(contextOf(sealed, devices))}`;
  }

  /** Returns the number of devices; undefined for a text that is no seal of this body. */
  read(sealed: SealedBody, text: string): number | undefined {
    const [, digits = '', mark = ''] = /^(\d{1,15})\.([\w-]{43})$/.exec(text) ?? [];
    if (digits === '') return undefined;
    const devices = Number(digits);
    const marks = this.#vault.derivedBy(contextOf(sealed, devices));
    return marks.some((one) => equalInConstantTime(one, mark)) ? devices : undefined;
  }
}

const contextOf = ({ appId, body }: SealedBody, devices: number): string =>
  `dry run ${appId} ${sha256(canonicalText(body)).toString('base64url')} ${devices}`;

/** Writes JSON with the members of every object in one order. */
function canonicalText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`).join(',')}}`;
}
