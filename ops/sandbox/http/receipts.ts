/** What a gateway calls the server back with. */
export interface ReceiptPost {
  headers: Record<string, string>;
  body: string;
}

/** A message that asked for receipts, and where they go. */
export interface ReceiptRequest {
  id: string;
  tokens: ReadonlySet<string>;
  callback: string;
  /** What was given to come back with each receipt. */
  param: string;
}

/** The last messages that asked for receipts. */
export class ReceiptLog<Message extends ReceiptRequest = ReceiptRequest> {
  readonly #capacity: number;
  #messages: Message[] = [];

  /** `kept`: how many messages are remembered. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  add(message: Message): void {
    this.#messages.push(message);
    if (this.#messages.length > this.#capacity) this.#messages.shift();
  }

  clear(): void {
    this.#messages = [];
  }

  /**
   * Posts a receipt for each message that went to some of these devices, but where `receiptOf` says null; returns the
   * HTTP statuses.
   */
  send(
    tokens: readonly string[],
    receiptOf: (message: Message, targets: string[]) => ReceiptPost | null,
  ): Promise<number[]> {
    return Promise.all(
      this.#messages.flatMap((message) => {
        const targets = tokens.filter((token) => message.tokens.has(token));
        const receipt = targets.length === 0 ? null : receiptOf(message, targets);
        return receipt === null ? [] : [post(message.callback, receipt)];
      }),
    );
  }
}

/** Posts a receipt to the URL of the message, as a gateway does. Returns the HTTP status. */
async function post(url: string, { headers, body }: ReceiptPost): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}
