import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { languagesOf, messageFields, readField } from '../../../draft/fields.ts';
import type { JsonRecord } from '../../../draft/json-text.ts';
import { Facts } from '../../../kit/panel.tsx';
import { ShownAudience } from '../../pushes/shown-condition.tsx';

interface DraftFactsProps {
  body: JsonRecord;
  /** When the push is sent: a name and its value. */
  start: readonly [name: string, value: ReactNode];
}

/** Text, audience, languages and start of a draft, for the question before it is sent or stored. */
export function DraftFacts({ body, start }: DraftFactsProps) {
  const { t } = useTranslation();
  const texts = [messageFields.title, messageFields.alert]
    .map((field) => readField(body, field))
    .filter(Boolean);
  const languages = languagesOf(body);
  return (
    <Facts
      rows={[
        [t('push.message'), texts.join(' · ') || t('push.silent')],
        [t('compose.to'), <ShownAudience key="to" target={body} />],
        ...(languages.length > 0 ? [[t('compose.languages'), languages.join(', ')] as const] : []),
        start,
      ]}
    />
  );
}
