import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type {
  AttemptResult,
  Connector,
  PushMessage,
  Receipt,
  ReceiptReading,
  Recipient,
  Sender,
} from '../../../connectors/contract/connector.ts';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import { aContext, type Outcome, recipients, sendAll } from './apns.ts';
import type { TestContext } from './sender-context.ts';

/** A maker of phones as the tests of its connector know it. */
export interface Vendor<G extends SandboxGateway> {
  connector: Connector;
  /** `vendor` of its installations. */
  vendor: string;
  /** Address of device number `n`. */
  deviceToken(n: number): string;
  /** The gateway that is sent to unless a test names another. */
  gateway(): G;
  /** Credentials of a profile at a gateway, without its address. */
  profile(gateway: G): object;
}

/** What a test may ask for beside the usual. */
export interface FixtureOptions<G> {
  context?: TestContext;
  /** Members of the profile beside the usual ones, or in their place. */
  more?: object;
  by?: G;
  connector?: Connector;
}

export interface PushOptions<G> extends FixtureOptions<G> {
  /** Three devices, if absent. */
  to?: Recipient[];
  message?: PushMessage;
}

export interface VendorFixture<G> {
  /** So many devices of the maker, at home unless their addresses say otherwise. */
  someone(count: number, more?: Partial<Recipient>, deviceToken?: (n: number) => string): Recipient[];
  open(options?: FixtureOptions<G>): Sender;
  /** Sends through a door of its own, which is closed behind it. */
  push(options?: PushOptions<G>): Promise<Outcome & { context: TestContext }>;
}

export function vendorFixture<G extends SandboxGateway>(vendor: Vendor<G>): VendorFixture<G> {
  const someone: VendorFixture<G>['someone'] = (count, more = {}, deviceToken = vendor.deviceToken) =>
    recipients(count, { deviceType: 'android', vendor: vendor.vendor, ...more }).map((one) => ({
      ...one,
      deviceToken: deviceToken(one.index),
    }));
  const open: VendorFixture<G>['open'] = (options = {}) => {
    const { by = vendor.gateway(), connector = vendor.connector, context = aContext(), more } = options;
    const profile = { ...vendor.profile(by), endpoint: by.url, ca: by.ca, ...more };
    return connector.open(connector.credentials.parse(profile), context);
  };
  return {
    someone,
    open,
    async push({ to = someone(3), message, context = aContext(), ...options } = {}) {
      const sender = open({ ...options, context });
      const outcome = await sendAll(sender, to, message);
      await sender.close();
      return { ...outcome, context };
    },
  };
}

/** What an HTTP status means of each device when nothing else is said (`connectors/kit`). */
export const statusMeanings: [number, string][] = [
  [500, 'retry'],
  [503, 'retry'],
  [429, 'retry'],
  [401, 'profile_error'],
  [403, 'profile_error'],
  [404, 'profile_error'],
  [400, 'rejected'],
];

/** The id that the gateway gave the message of a device. */
export function messageIdOf(attempt: AttemptResult | undefined): string {
  if (attempt?.kind !== 'sent' || attempt.messageId === undefined) throw new Error('it was not sent');
  return attempt.messageId;
}

/** Listens at an address of ours while `work` goes on; gives the receipts that came, as `read` takes them. */
export async function receiptsDuring(
  read: (body: string) => ReceiptReading | undefined,
  work: (callbackUrl: string) => Promise<void>,
): Promise<Receipt[]> {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(await text(request));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await work(`http://127.0.0.1:${port}/callbacks/vendor/app/secret`);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  return bodies.flatMap((body) => {
    const reading = read(body);
    return reading?.ok ? reading.receipts : [];
  });
}
