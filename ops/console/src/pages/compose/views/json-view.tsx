import { useTranslation } from 'react-i18next';
import { JsonTextError, memberPlace } from '../../../draft/json-text.ts';
import { CodeArea, type Fault } from '../../../kit/form/code-area.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { useForm } from '../draft-field.tsx';
import type { Draft } from '../draft-state.ts';

/** The body as JSON text, to edit. */
export function JsonView() {
  const { t } = useTranslation();
  const { draft, refusal } = useForm();
  const faultText = useFaultText(draft.fault);
  const fault = placeOf(draft.fault) ?? memberPlace(draft.text, refusal?.member);
  return (
    <Panel title={t('compose.body')}>
      <CodeArea
        label={t('compose.json')}
        hint={t('compose.jsonHint')}
        error={faultText ?? refusal?.message}
        fault={fault}
        rows={22}
        value={draft.text}
        onChange={(event) => draft.setText(event.target.value)}
      />
    </Panel>
  );
}

const placeOf = (fault: Draft['fault']): Fault | undefined =>
  fault instanceof JsonTextError ? fault : undefined;

/** Says what is wrong with the text, and where. */
export function useFaultText(fault: Draft['fault']): string | undefined {
  const { t } = useTranslation();
  if (fault === undefined) return undefined;
  if (!(fault instanceof JsonTextError)) return t('fault.noObject');
  return t('fault.at', { reason: t(`fault.${fault.reason}`), line: fault.line, column: fault.column });
}
