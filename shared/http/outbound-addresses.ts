/**
 * Addresses that the service connects to for others: `endpoint`, `proxy`, `functionsUrl` and every
 * other URL that the admin API stores. A person who sets such a URL must not reach the networks of
 * the service with it (server-side request forgery, CWE-918). So each connection checks the address
 * that the name resolved to: a check of the name alone would be passed by a name that resolves to
 * another address the next time.
 */

import { lookup as resolve } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { PrivateHosts } from '../config/private-hosts.ts';
import { equalInConstantTime, type Vault } from '../crypto.ts';

/**
 * Error of a connection to an address that CARILLON_PRIVATE_HOSTS does not allow. Names no address.
 */
class AddressRefused extends Error {
  override name = 'AddressRefused';
  readonly code = 'ADDRESS_REFUSED';
}

let allowed = new PrivateHosts('');

/**
 * Sets what CARILLON_PRIVATE_HOSTS allows in this thread. Without this call only public addresses
 * are allowed.
 */
export function setPrivateHosts(text: string): void {
  allowed = new PrivateHosts(text);
}

/**
 * Throws `AddressRefused` if `host` is an address, in a URL's form, that no connection may go to.
 * Names pass here: `guardedLookup` checks what they resolve to.
 */
export function requireAllowedAddress(host: string): void {
  const address = host.replace(/^\[|\]$/g, '');
  if (isIP(address) === 0 || allowed.allows(address)) return;
  throw new AddressRefused('the address is not allowed: CARILLON_PRIVATE_HOSTS does not list it');
}

/**
 * Returns the longest time for one address of a host that has several (Node's `autoSelectFamily`),
 * in ms. Node's own 250 ms cut off addresses that are far away.
 */
export const addressAttemptMs = (connectMs: number): number =>
  Math.max(1000, Math.floor(connectMs / 3));

/**
 * Resolves a name to the addresses that a connection may go to; fails with `AddressRefused` when
 * there is none. Node connects to what this function returns, so the checked address is the one
 * that is used.
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
 * Tells whether a URL can be known to be refused before it is used: its host is an address that is
 * not allowed, or a name of this machine. Gives a clear answer when the URL is set; each
 * connection is checked again.
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

/** App and connector of a callback URL. */
interface CallbackOwner {
  appId: string;
  connector: string;
}

/** 144 bits: gateways limit the URL to 128 bytes. */
const secretCharacters = 24;

const contextOf = ({ appId, connector }: CallbackOwner, generation: number) =>
  `callback ${connector} ${appId}${generation === 0 ? '' : ` ${generation}`}`;

/** Returns the generation that a secret names: `<generation>.<secret>`, and 0 without one. */
const generationIn = (secret: string): number => Number(/^([1-9]\d{0,6})\./.exec(secret)?.[1] ?? 0);

const textOf = (generation: number, derived: string): string =>
  `${generation === 0 ? '' : `${generation}.`}${derived.slice(0, secretCharacters)}`;

/**
 * Derives the secret of a callback URL; it is not stored. `generation`: the option
 * `receiptUrlGeneration` of the app.
 */
export const callbackSecret = (vault: Vault, owner: CallbackOwner, generation: number): string =>
  textOf(generation, vault.derive(contextOf(owner, generation)));

/**
 * Returns the generation of a receipt's secret; undefined if it does not belong to this owner. The
 * app decides whether this generation still counts. Accepts secrets of older keys.
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

/**
 * Returns `PUBLIC_URL/callbacks/:connector/:appId/:secret`, to which a gateway sends the receipts
 * of an app.
 */
export const callbackUrl = (
  publicUrl: string,
  vault: Vault,
  { generation, ...owner }: CallbackOwner & { generation: number },
): string =>
  `${publicUrl}/callbacks/${owner.connector}/${owner.appId}/${callbackSecret(vault, owner, generation)}`;
