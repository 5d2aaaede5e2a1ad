import { createHash } from 'node:crypto';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { type Browser, browserOf, subscriptionOf } from '../../sandbox/webpush/browser.ts';
import { asMaster, asOperator, call, type Demo, type DemoApi } from '../demo.ts';
import { browserProfile } from './profile.ts';
import type { texts } from './texts.ts';

/** The demo app and its service, as the page needs them. */
export interface TryService {
  api: DemoApi;
  /** Base URL of links to the console. */
  publicUrl: string;
  app: Pick<Demo, 'appId' | 'appKey' | 'masterKey'>;
  /** Returns the current URL of the sandbox's page. It changes when the sandbox restarts. */
  sandboxPage: () => string;
}

/** A call of the page is refused. `text` is the name of a text in `texts.json`. */
export class Refusal extends Error {
  readonly status: number;
  readonly text: keyof (typeof texts)['en'];
  readonly values: Record<string, string | number>;

  constructor(status: number, text: Refusal['text'], values: Refusal['values'] = {}) {
    super(text);
    this.status = status;
    this.text = text;
    this.values = values;
  }
}

export interface SendOrder {
  objectId: string;
  /** Number in the message, by which the page recognises it. */
  number: number;
}

/** Text of the push. */
export interface PushText {
  title: string;
  alert: string;
}

interface Sent {
  pushId: string;
  /** The message that the simulated browser decrypted. Null if it got none in time. */
  message?: unknown;
}

/** Maximum number of pushes and registrations of all pages in a minute. */
export const callsPerMinute = 20;
const windowMs = 60_000;
/** A push that is not delivered by then is not delivered at all. */
const lifetimeS = 60;
/** Maximum wait for the message in the sandbox, and the interval of the checks. */
const messageMs = 10_000;
const pollMs = 20;

const installation = z.object({ vendor: z.string(), deviceProfile: z.string() });
const withId = z.object({ objectId: z.string() });
const requests = z.array(z.object({ path: z.string(), status: z.number(), body: z.string() }));
/** Status with which a push service takes a message. */
const taken = 201;

/**
 * Sends the pushes of the page with the master key, which the page does not have. Each push goes to
 * one device: the simulated browser, or a browser that registered with the page's profile.
 */
export class TrySender {
  readonly #service: TryService;
  readonly #browser: Browser;
  #simulatedId: string | undefined;
  #calledAtMs: number[] = [];

  constructor(service: TryService) {
    this.#service = service;
    // The same browser at each start, so that it remains one device of the demo app.
    const hash = createHash('sha256').update(`try ${service.app.appId}`).digest('hex');
    this.#browser = browserOf(hash);
  }

  /** Registers the simulated browser as a device. Returns its object id. */
  async registerSimulated(): Promise<{ objectId: string }> {
    const body = {
      deviceType: 'web',
      vendor: 'webpush',
      installationId: 'simulated-browser-of-the-page',
      subscription: subscriptionOf(this.#browser),
    };
    const { objectId } = await this.#call('POST', '/1.1/installations', { body, shape: withId });
    this.#simulatedId = objectId;
    return { objectId };
  }

  /** Makes a browser that registered a test device of the app, for the composer of the console. */
  async addTestDevice(objectId: string, name: string): Promise<void> {
    this.#count();
    await this.#requireBrowser(objectId);
    const { api, app } = this.#service;
    const path = `/console/api/apps/${app.appId}/test-devices/${encodeURIComponent(name)}`;
    const request = { method: 'PUT', path, body: { installation: objectId } };
    await call(api, { ...request, headers: asOperator(api) }, z.unknown());
  }

  /** Sends a push to one device of the page. Waits for the message of the simulated browser. */
  async send({ objectId, number }: SendOrder, text: PushText): Promise<Sent> {
    this.#count();
    const isSimulated = objectId === this.#simulatedId;
    if (!isSimulated) await this.#requireBrowser(objectId);
    const body = {
      where: { objectId },
      data: { ...text, tryNumber: number },
      expiration_interval: lifetimeS,
    };
    const sent = await this.#call('POST', '/1.1/push', { body, shape: withId });
    const pushId = sent.objectId;
    return isSimulated ? { pushId, message: await this.#messageOf(number) } : { pushId };
  }

  /** Throws if the limit of calls in a minute is reached. */
  #count(): void {
    const nowMs = performance.now();
    this.#calledAtMs = this.#calledAtMs.filter((atMs) => atMs > nowMs - windowMs);
    if (this.#calledAtMs.length >= callsPerMinute)
      throw new Refusal(429, 'tooMany', { limit: callsPerMinute });
    this.#calledAtMs.push(nowMs);
  }

  /** Throws if a device is not a browser that registered with the page's profile. */
  async #requireBrowser(objectId: string): Promise<void> {
    const path = `/1.1/installations/${objectId}`;
    const found = await this.#call('GET', path, { shape: installation }).catch((error: unknown) => {
      // `fetch` throws a TypeError if the api cannot be reached. Others are refusals of the api.
      if (error instanceof TypeError) throw error;
      return undefined;
    });
    if (found?.vendor !== 'webpush' || found.deviceProfile !== browserProfile)
      throw new Refusal(404, 'noDevice');
  }

  /** Polls the sandbox for the message with a number. Returns null if it does not arrive in time. */
  async #messageOf(number: number): Promise<unknown> {
    const { pathname, search } = new URL(this.#browser.endpoint);
    const target = pathname + search;
    const endsAtMs = performance.now() + messageMs;
    while (performance.now() < endsAtMs) {
      const reply = await fetch(`${this.#service.sandboxPage()}/webpush/requests.json`);
      const received = requests.parse(await reply.json());
      for (const { body, path, status } of received) {
        const message = path === target && status === taken ? messageIn(body) : undefined;
        if (message?.tryNumber === number) return message;
      }
      await sleep(pollMs);
    }
    return null;
  }

  #call<T>(
    method: string,
    path: string,
    { body, shape }: { body?: object; shape: z.ZodType<T> },
  ): Promise<T> {
    const { api, app } = this.#service;
    return call(api, { method, path, ...(body ? { body } : {}), headers: asMaster(app) }, shape);
  }
}

const messageForm = z.looseObject({ tryNumber: z.number() });

/** Parses a decrypted message of this page. A refused request may have another body. */
function messageIn(body: string): z.infer<typeof messageForm> | undefined {
  try {
    return messageForm.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}
