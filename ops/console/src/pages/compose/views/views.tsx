import { useTranslation } from 'react-i18next';
import { adminBase, JsonText, requestOf } from '../../../../../client/client.ts';
import { targetKindOf } from '../../../draft/fields.ts';
import { JsonTextError, memberPosition, printJson } from '../../../draft/json-text.ts';
import { Snippet } from '../../../kit/controls/copy.tsx';
import { CodeArea, type Fault } from '../../../kit/form/code-area.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { useForm } from '../draft-field.tsx';
import type { Draft } from '../draft-state.ts';
import styles from './views.module.css';

/** The push as API calls and as a CLI command. */
export function CurlView({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const body = quoted(printJson(draft.body, 2));
  const { origin } = window.location;
  const path = targetKindOf(draft.body) === 'devices' ? '/1.1/push/devices' : '/1.1/push';
  const addressOf = (operation: 'sendAppPush' | 'explainPush') =>
    origin + adminBase + requestOf(operation, { path: { appId }, body: new JsonText(body) }).path;
  const json = "-H 'Content-Type: application/json'";
  return (
    <Panel title={t('compose.calls')}>
      <div className={styles.calls}>
        <Snippet
          label={t('compose.adminCall')}
          text={`curl -X POST ${addressOf('sendAppPush')} \\\n  -H "Authorization: Bearer $CARILLON_ADMIN_TOKEN" ${json} \\\n  -d ${body}`}
        />
        <Snippet
          label={t('compose.dryRunCall')}
          text={`curl -X POST ${addressOf('explainPush')} \\\n  -H "Authorization: Bearer $CARILLON_ADMIN_TOKEN" ${json} \\\n  -d ${body}`}
        />
        <Snippet
          label={t('compose.appCall')}
          text={`curl -X POST ${origin}${path} \\\n  -H 'X-LC-Id: ${appId}' -H "X-LC-Key: $MASTER_KEY,master" ${json} \\\n  -d ${body}`}
        />
      </div>
    </Panel>
  );
}

/** Quotes a text for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Editor for the body as JSON text. */
export function JsonView() {
  const { t } = useTranslation();
  const { draft, refusal } = useForm();
  const faultText = useFaultText(draft.fault);
  const fault = placeOf(draft.fault) ?? memberPosition(draft.text, refusal?.member);
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

/** Returns a message about the error in the text and its position. */
export function useFaultText(fault: Draft['fault']): string | undefined {
  const { t } = useTranslation();
  if (fault === undefined) return undefined;
  if (!(fault instanceof JsonTextError)) return t('fault.noObject');
  return t('fault.at', {
    reason: t(`fault.${fault.reason}`),
    line: fault.line,
    column: fault.column,
  });
}
