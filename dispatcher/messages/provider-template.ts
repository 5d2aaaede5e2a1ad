import type { Provider, ProviderTemplate, SmsMessage } from '../../connectors/provider.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { findActiveTemplate, type TemplateText } from '../../shared/db/tables/sms.ts';
import { defaultTemplateNames } from '../../shared/domain/messages/sms-provider.ts';
import { parseTemplate } from '../../shared/template.ts';

interface Sought {
  appId: string;
  to: string;
  /** Template of the message. Undefined for a message with the built-in text. */
  name: string | undefined;
}

/**
 * Finds the template that a message has at its provider. Reads it when the message is sent, so that
 * a failed message can be sent again after the operator has corrected the template.
 */
export async function findProviderTemplate(
  db: Handle,
  provider: Provider<SmsMessage>,
  { appId, to, name }: Sought,
): Promise<Pick<SmsMessage, 'providerTemplate' | 'templateName'>> {
  const names = name === undefined ? defaultTemplateNames(to.startsWith('+86')) : [name];
  const templateName = names.at(-1) ?? '';
  if (provider.template === undefined) return { templateName };
  const found = await findActiveTemplate(db, appId, names);
  return {
    templateName: found?.name ?? templateName,
    providerTemplate: found?.active ? withParameters(found.active) : undefined,
  };
}

/** Returns the templates of the providers with their parameters, given or from the text. */
function withParameters({ text, providers = {} }: TemplateText): ProviderTemplate {
  const parsed = parseTemplate(text, { format: 'text' });
  const variables = parsed.ok ? [...parsed.template.variables] : [];
  const { aliyun, tencent } = providers;
  const byName = Object.fromEntries(variables.map((variable) => [variable, variable]));
  return {
    ...(aliyun && { aliyun: { code: aliyun.code, params: aliyun.params ?? byName } }),
    ...(tencent && { tencent: { id: tencent.id, params: tencent.params ?? variables } }),
  };
}
