/**
 * Checks addresses that the service connects to because of stored URLs: `endpoint`, `proxy`,
 * `functionsUrl` and all other URLs that the admin API stores. A person who sets such a URL must
 * not reach the service's own networks with it (server-side request forgery, CWE-918). Each
 * connection checks the address that the name resolved to. Checking only the name would not be
 * enough, because a name may resolve to another address the next time.
 */

import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { PrivateHosts } from '../config/private-hosts.ts';
import { equalInConstantTime, type Vault } from '../crypto.ts';

/**
 * Error of a connection to an address that CARILLON_PRIVATE_HOSTS does not allow. Contains no
 * address.
 */
class AddressRefused extends Error {
  override name = 'AddressRefused';
  readonly code = 'ADDRESS_REFUSED';
}

let allowed = new PrivateHosts('');

/**
 * Sets what CARILLON_PRIVATE_HOSTS allows in this thread. Until then, only public addresses are
 * allowed.
 */
export function setPrivateHosts(text: string): void {
  allowed = new PrivateHosts(text);
}

/**
 * Throws `AddressRefused` if `host` is an address that is not allowed. `host` has the form it has
 * in a URL. Names are accepted here, because `guardedLookup` checks the addresses that they resolve
 * to.
 */
export function requireAllowedAddress(host: string): void {
  const address = host.replace(/^\[|\]$/g, '');
  if (isIP(address) === 0 || allowed.allows(address)) return;
  throw new AddressRefused('the address is not allowed: CARILLON_PRIVATE_HOSTS does not list it');
}

/**
 * Returns the timeout in ms for one address of a host that has several (`autoSelectFamily` of
 * Node.js). The 250 ms of Node.js are too short for distant addresses.
 */
export const addressAttemptMs = (connectMs: number): number =>
  Math.max(1000, Math.floor(connectMs / 3));

/**
 * Resolves a name to the allowed addresses. Fails with `AddressRefused` if no address is allowed. Node.js
 * connects to the addresses that this function returns, so the checked address is the used address.
 */
export const guardedLookup: LookupFunction = (hostname, options, callback) => {
  resolve(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 4);
    const usable = addresses.filter(({ address }) => allowed.allows(address, hostname));
    const [first] = usable;
    if (!first) {
      const refusal = new AddressRefused(
        'the name resolves to addresses that CARILLON_PRIVATE_HOSTS does not list',
      );
      return callback(refusal, '', 4);
    }
    return options.all ? callback(null, usable) : callback(null, first.address, first.family);
  });
};

/**
 * True if it is certain before any connection that a URL is refused: its host is an address that is
 * not allowed, or a name of this machine. Used to give a clear error when the URL is set. Each
 * connection checks again.
 */
export function isRefusedUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return !allowed.allows(host);
  return (
    /(^|\.)localhost\.?$/i.test(host) &&
    !allowed.allows('127.0.0.1', host) &&
    !allowed.allows('::1', host)
  );
}

/**
 * True if the host of a URL is a private address or name that CARILLON_PRIVATE_HOSTS lists. Such a
 * URL may use `http`.
 */
export function isListedUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return allowed.lists(/(^|\.)localhost\.?$/i.test(host) ? '127.0.0.1' : host, host);
}

/** App and connector of a callback URL. */
interface CallbackOwner {
  appId: string;
  connector: string;
}

/** 144 bits. The secret is short, because gateways limit the URL to 128 bytes. */
const secretCharacters = 24;

const contextOf = ({ appId, connector }: CallbackOwner, generation: number) =>
  `callback ${connector} ${appId}${generation === 0 ? '' : ` ${generation}`}`;

/**
 * Returns the generation in a secret of the form `<generation>.<secret>`; 0 if it contains none.
 */
const generationIn = (secret: string): number => Number(/^([1-9]\d{0,6})\./.exec(secret)?.[1] ?? 0);

const textOf = (generation: number, derived: string): string =>
  `${generation === 0 ? '' : `${generation}.`}${derived.slice(0, secretCharacters)}`;

/**
 * Derives the secret of a callback URL; it is not stored. `generation` is the app's option
 * `receiptUrlGeneration`.
 */
export const callbackSecret = (vault: Vault, owner: CallbackOwner, generation: number): string =>
  textOf(generation, vault.derive(contextOf(owner, generation)));

/**
 * Returns the generation of a receipt's secret. Returns undefined if the secret does not belong to
 * this owner. Secrets of older keys are accepted. The app decides whether the generation is still
 * valid.
 */
export function generationOfSecret(
  vault: Vault,
  owner: CallbackOwner,
  given: string,
): number | undefined {
  const generation = generationIn(given);
  const isRight = vault
    .derivedBy(contextOf(owner, generation))
    .map((derived) => equalInConstantTime(textOf(generation, derived), given))
    .includes(true);
  return isRight ? generation : undefined;
}

/** Returns the URL for the receipts of an app: `PUBLIC_URL/callbacks/:connector/:appId/:secret`. */
export const callbackUrl = (
  publicUrl: string,
  vault: Vault,
  { generation, ...owner }: CallbackOwner & { generation: number },
): string =>
  `${publicUrl}/callbacks/${owner.connector}/${owner.appId}/${callbackSecret(vault, owner, generation)}`;
