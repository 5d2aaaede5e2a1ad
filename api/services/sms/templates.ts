import type { Handle } from '../../../shared/db/pool.ts';
import {
  approveSignature,
  approveTemplate,
  deleteSignature,
  deleteTemplate,
  findSignature,
  findTemplate,
  listSignatures,
  listTemplates,
  putSignature,
  putTemplate,
  type SmsSignature,
  type SmsTemplate,
  type TemplateText,
} from '../../../shared/db/tables/sms.ts';
import { itemNameOf } from '../../../shared/domain/admin/names.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { templateBalance } from '../../../shared/domain/messages/sms.ts';
import { defaultTemplates, variablesOf } from '../../../shared/domain/messages/sms-provider.ts';
import { parseTemplate } from '../../../shared/template.ts';
import type { ApiDeps } from '../deps.ts';
import { noSuchApp, requireApp } from '../operator/apps.ts';
import { type Change, recordChange } from '../operator/audit/audit.ts';
import { isAllowedInMessages, reservedVariables } from './message-text.ts';

/**
 * Review status. `approved` means that the returned text is in use. `pending` means that it waits
 * for review and `active` is in use.
 */
type Status = 'approved' | 'pending';

export interface PublicTemplate extends TemplateText {
  name: string;
  status: Status;
  active: TemplateText | null;
  createdAt: Date;
  updatedAt: Date;
}

export interface PublicSignature {
  name: string;
  status: Status;
  createdAt: Date;
  updatedAt: Date;
}

/**
 * Manages templates and signatures of messages, and their review (protocol/admin-api.md#sms-texts).
 */
export class SmsTemplateService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Submits a template for review, as a new template or as a replacement. Throws error 160 if the
   * app has a balance and it is below 200 currency units (protocol/codes.md#templates), 400 if the
   * text or an entry of a provider is invalid, 404 if the app does not exist.
   */
  async putTemplate(appId: string, name: string, text: TemplateText): Promise<PublicTemplate> {
    const app = await requireApp(this.#deps, appId);
    const { smsBalance } = app.options;
    if (smsBalance !== null && smsBalance < templateBalance) throw refuse('insufficientBalance');
    checkName(name);
    checkTemplate(name, text);
    const template = await this.#audited(
      { action: 'sms-template.put', appId, target: name, after: { ...text } },
      async (tx) => {
        const before = await findTemplate(tx, appId, name);
        const put = await putTemplate(tx, appId, name, text);
        const old = before?.pending ?? before?.active;
        return { value: put, ...(old ? { before: { ...old } } : {}) };
      },
    );
    return template ? publicTemplate(template) : noSuchApp();
  }

  async listTemplates(appId: string): Promise<PublicTemplate[]> {
    await requireApp(this.#deps, appId);
    return (await listTemplates(this.#deps.db, appId)).map(publicTemplate);
  }

  async getTemplate(appId: string, name: string): Promise<PublicTemplate> {
    await requireApp(this.#deps, appId);
    return publicTemplate(
      (await findTemplate(this.#deps.db, appId, name)) ?? refuseMissing('template'),
    );
  }

  async approveTemplate(appId: string, name: string): Promise<PublicTemplate> {
    await requireApp(this.#deps, appId);
    const approved = await this.#audited(
      { action: 'sms-template.approve', appId, target: name },
      async (tx) => ({ value: await approveTemplate(tx, appId, name) }),
    );
    return publicTemplate(approved ?? refuseMissing('template'));
  }

  async deleteTemplate(appId: string, name: string): Promise<void> {
    await requireApp(this.#deps, appId);
    const isDeleted = await this.#audited(
      { action: 'sms-template.delete', appId, target: name },
      async (tx) => ({ value: (await deleteTemplate(tx, appId, name)) || undefined }),
    );
    if (!isDeleted) refuseMissing('template');
  }

  async putSignature(appId: string, name: string): Promise<PublicSignature> {
    checkName(name);
    if (!isAllowedInMessages(name))
      throw refuse(
        'invalidParameter',
        'A signature must not hold links, 【】 or control characters.',
      );
    const signature = await this.#audited(
      { action: 'sms-signature.put', appId, target: name },
      async (tx) => ({ value: await putSignature(tx, appId, name) }),
    );
    return signature ? publicSignature(signature) : noSuchApp();
  }

  async listSignatures(appId: string): Promise<PublicSignature[]> {
    await requireApp(this.#deps, appId);
    return (await listSignatures(this.#deps.db, appId)).map(publicSignature);
  }

  async getSignature(appId: string, name: string): Promise<PublicSignature> {
    await requireApp(this.#deps, appId);
    return publicSignature(
      (await findSignature(this.#deps.db, appId, name)) ?? refuseMissing('signature'),
    );
  }

  async approveSignature(appId: string, name: string): Promise<PublicSignature> {
    await requireApp(this.#deps, appId);
    const approved = await this.#audited(
      { action: 'sms-signature.approve', appId, target: name },
      async (tx) => ({ value: await approveSignature(tx, appId, name) }),
    );
    return publicSignature(approved ?? refuseMissing('signature'));
  }

  async deleteSignature(appId: string, name: string): Promise<void> {
    await requireApp(this.#deps, appId);
    const isDeleted = await this.#audited(
      { action: 'sms-signature.delete', appId, target: name },
      async (tx) => ({ value: (await deleteSignature(tx, appId, name)) || undefined }),
    );
    if (!isDeleted) refuseMissing('signature');
  }

  /**
   * Makes a change and records it, in one transaction. Returns undefined if nothing was changed.
   */
  #audited<T>(
    change: Change,
    work: (tx: Handle) => Promise<{ value: T | undefined; before?: JsonObject }>,
  ): Promise<T | undefined> {
    return this.#deps.db.transaction(async (tx) => {
      const { value, before } = await work(tx);
      if (value !== undefined) await recordChange(tx, { ...change, before });
      return value;
    });
  }
}

function refuseMissing(noun: 'template' | 'signature'): never {
  throw refuse('notFound', `There is no such ${noun}.`);
}

/**
 * Throws error 1 if the name cannot be part of a path, or begins or ends with blanks. Clients send
 * the name unchanged.
 */
function checkName(name: string): void {
  if (itemNameOf(name) !== name)
    throw refuse('invalidParameter', 'A name has no blanks at its ends.');
}

/**
 * Throws error 1 for links, for a verification template without its code
 * (protocol/codes.md#templates), and for parameters of a provider that no message of the template
 * has.
 */
function checkTemplate(name: string, { type, text, providers }: TemplateText): void {
  const parsed = parseTemplate(text, { format: 'text' });
  if (!parsed.ok) throw refuse('invalidParameter', parsed.hint);
  if (!isAllowedInMessages(text))
    throw refuse('invalidParameter', 'A template must not hold links, 【】 or control characters.');
  const hasCode = parsed.template.variables.has('code');
  if (type === 'verification' && !hasCode)
    throw refuse('invalidParameter', 'A verification template must show {{code}}.');
  if (type === 'notification' && hasCode)
    throw refuse(
      'invalidParameter',
      'A notification has no {{code}}: make it a verification template.',
    );
  if (type === 'notification' && Object.values<string>(defaultTemplates).includes(name))
    throw refuse('invalidParameter', `${name} is the template of codes: make it a verification.`);
  for (const variable of variablesOf(providers ?? {})) {
    const isKnown =
      parsed.template.variables.has(variable) ||
      (reservedVariables.has(variable) && (variable !== 'code' || type === 'verification'));
    if (!isKnown)
      throw refuse(
        'invalidParameter',
        `providers: ${variable} is neither a variable of the text nor one of ${[...reservedVariables].join(', ')}.`,
      );
  }
}

function publicTemplate({
  name,
  active,
  pending,
  createdAt,
  updatedAt,
}: SmsTemplate): PublicTemplate {
  const current = pending ?? active;
  if (!current) throw new Error('a template without a text');
  return {
    name,
    ...current,
    status: pending ? 'pending' : 'approved',
    active: active ?? null,
    createdAt,
    updatedAt,
  };
}

const publicSignature = ({
  name,
  isApproved,
  createdAt,
  updatedAt,
}: SmsSignature): PublicSignature => ({
  name,
  status: isApproved ? 'approved' : 'pending',
  createdAt,
  updatedAt,
});
