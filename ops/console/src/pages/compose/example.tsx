import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useDevices } from '../../api/devices.ts';
import { messageFields, readField, targetKindOf, variablesOf } from '../../draft/fields.ts';
import { isRecord, type JsonRecord, printJson } from '../../draft/json-text.ts';
import { filledText } from '../../draft/samples.ts';
import styles from './compose.module.css';
import { useForm } from './draft-field.tsx';
import { countDelayMs, useDebounced } from './draft-state.ts';

/**
 * Returns a device of the app that matches the draft's condition, for examples. Undefined while it
 * is loaded, null without such a device.
 */
export function useExampleDevice(appId: string, body: JsonRecord) {
  const isNeeded = variablesOf(body).length > 0;
  const where = targetKindOf(body) === 'where' && isRecord(body.where) ? body.where : {};
  const condition = useDebounced(printJson(where), countDelayMs);
  const filters = condition === '{}' ? {} : { where: condition };
  const { data } = useDevices(appId, { ...filters, limit: 1 }, isNeeded && condition !== undefined);
  return data ? (data.results[0] ?? null) : undefined;
}

/** Title and text as one real device gets them. */
export function Example() {
  const { t } = useTranslation();
  const { appId, draft } = useForm();
  const device = useExampleDevice(appId, draft.body);
  if (device === undefined) return null;
  if (device === null) return <p className={styles.note}>{t('compose.noExample')}</p>;
  const members: Record<string, unknown> = { ...device };
  const texts = [messageFields.title, messageFields.alert].map((field) =>
    filledText(readField(draft.body, field) ?? '', draft.body, (name) => members[name]),
  );
  return (
    <section className={styles.override} aria-label={t('compose.exampleOf')}>
      <span className={styles.note}>
        {t('compose.exampleOf')}:{' '}
        <Link
          to="/apps/$appId/devices/$deviceId"
          params={{ appId, deviceId: device.objectId }}
          translate="no"
        >
          {device.objectId}
        </Link>
      </span>
      <p translate="no">
        {texts
          .filter((text) => text !== '')
          .map((text) => (
            <span key={text} className={styles.line}>
              {text}
            </span>
          ))}
      </p>
    </section>
  );
}
