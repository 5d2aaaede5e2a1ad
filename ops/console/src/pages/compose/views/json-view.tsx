import { useTranslation } from 'react-i18next';
import { JsonTextError } from '../../../draft/json-text.ts';
import { TextArea } from '../../../kit/controls/field.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { useForm } from '../draft-field.tsx';
import type { Draft } from '../draft-state.ts';
import styles from './views.module.css';

/** The body as JSON text, to edit. */
export function JsonView() {
  const { t } = useTranslation();
  const { draft, refusal } = useForm();
  const fault = useFaultText(draft.fault);
  return (
    <Panel title={t('compose.body')}>
      <div className={styles.json}>
        <TextArea
          label={t('compose.json')}
          hint={t('compose.jsonHint')}
          error={fault ?? refusal?.message}
          rows={22}
          isCode
          value={draft.text}
          onChange={(event) => draft.setText(event.target.value)}
        />
      </div>
    </Panel>
  );
}

/** Says what is wrong with the text, and where. */
export function useFaultText(fault: Draft['fault']): string | undefined {
  const { t } = useTranslation();
  if (fault === undefined) return undefined;
  if (!(fault instanceof JsonTextError)) return t('fault.noObject');
  return t('fault.at', { reason: t(`fault.${fault.reason}`), line: fault.line, column: fault.column });
}
