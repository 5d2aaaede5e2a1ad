import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type {
  AttemptResult,
  Connector,
  PushMessage,
  Receipt,
  ReceiptsResult,
  Recipient,
  Sender,
} from '../../../connectors/contract/connector.ts';
import type { SandboxGateway } from '../../../ops/sandbox/http/server.ts';
import { aContext, type Outcome, recipients, sendAll } from './apns.ts';
import type { TestContext } from './sender-context.ts';

/** Vendor in the tests of its connector. */
export interface Vendor<G extends SandboxGateway> {
  connector: Connector;
  /** Value of `vendor` in its installations. */
  vendor: string;
  /** Returns the token of device number `n`. */
  deviceToken(n: number): string;
  /** Returns the default gateway. */
  gateway(): G;
  /** Returns the credentials of a profile for a gateway. They contain no URL. */
  profile(gateway: G): object;
}

/** Options that differ from the defaults. */
export interface FixtureOptions<G> {
  context?: TestContext;
  /** Members that complete or override the default profile. */
  more?: object;
  by?: G;
  connector?: Connector;
}

export interface PushOptions<G> extends FixtureOptions<G> {
  /** Recipients. The default is three devices. */
  to?: Recipient[];
  message?: PushMessage;
}

export interface VendorFixture<G> {
  /**
   * Returns this many recipients of the vendor. They are in China unless their addresses say
   * otherwise.
   */
  makeRecipients(
    count: number,
    more?: Partial<Recipient>,
    deviceToken?: (n: number) => string,
  ): Recipient[];
  open(options?: FixtureOptions<G>): Sender;
  /** Sends with a new sender, which is closed afterwards. */
  push(options?: PushOptions<G>): Promise<Outcome & { context: TestContext }>;
}

export function vendorFixture<G extends SandboxGateway>(vendor: Vendor<G>): VendorFixture<G> {
  const makeRecipients: VendorFixture<G>['makeRecipients'] = (
    count,
    more = {},
    deviceToken = vendor.deviceToken,
  ) =>
    recipients(count, { deviceType: 'android', vendor: vendor.vendor, ...more }).map((one) => ({
      ...one,
      deviceToken: deviceToken(one.index),
    }));
  const open: VendorFixture<G>['open'] = (options = {}) => {
    const {
      by = vendor.gateway(),
      connector = vendor.connector,
      context = aContext(),
      more,
    } = options;
    const profile = { ...vendor.profile(by), endpoint: by.url, ca: by.ca, ...more };
    return connector.open(connector.credentials.parse(profile), context);
  };
  return {
    makeRecipients,
    open,
    async push({ to = makeRecipients(3), message, context = aContext(), ...options } = {}) {
      const sender = open({ ...options, context });
      const outcome = await sendAll(sender, to, message);
      await sender.close();
      return { ...outcome, context };
    },
  };
}

/**
 * Expected results by HTTP status for replies that do not come from the vendor itself
 * (`connectors/kit`).
 */
export const statusMeanings: [number, string][] = [
  [500, 'retry'],
  [503, 'retry'],
  [429, 'retry'],
  [401, 'retry'],
  [403, 'retry'],
  [404, 'retry'],
  [400, 'retry'],
];

/** Returns the gateway's id for the message of a device. */
export function messageIdOf(attempt: AttemptResult | undefined): string {
  if (attempt?.kind !== 'sent' || attempt.messageId === undefined)
    throw new Error('it was not sent');
  return attempt.messageId;
}

/** Listens for receipts while `work` runs. Returns the receipts as parsed by `read`. */
export async function receiptsDuring(
  read: (body: string) => ReceiptsResult | undefined,
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
    const parsed = read(body);
    return parsed?.ok ? parsed.receipts : [];
  });
}
