import { useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Audience } from '../../../../../client/operations.ts';
import { useAudience } from '../../../api/compose.ts';
import { useChannels } from '../../../api/devices.ts';
import {
  settingFields,
  type TargetKind,
  targetKindOf,
  withTargetKind,
} from '../../../draft/fields.ts';
import { printJson, withValueAt } from '../../../draft/json-text.ts';
import { idsInCsv } from '../../../draft/limits.ts';
import { targetOf } from '../../../draft/where.ts';
import { FileDrop } from '../../../kit/controls/files.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { formatCount, formatDuration } from '../../../text/format.ts';
import { DraftChoice, DraftField, useForm } from '../draft-field.tsx';
import { countDelayMs, useDebounced } from '../draft-state.ts';
import { Audiences } from '../saved/saved-dialog.tsx';
import { Conditions } from './conditions.tsx';
import styles from './target.module.css';

const kinds: readonly TargetKind[] = ['where', 'devices', 'cql'];

interface TargetProps {
  appId: string;
  setIncomplete: (isIncomplete: boolean) => void;
}

/** Target devices of the push. Their number is updated while the condition is edited. */
export function Target({ appId, setIncomplete }: TargetProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const kind = targetKindOf(draft.body);
  const channelsId = useId();
  const channels = useChannels(appId).data?.results ?? [];
  const audience = useAudience(appId, useDebounced(printJson(targetOf(draft.body)), countDelayMs));
  return (
    <Panel
      title={t('compose.to')}
      side={<Count audience={audience.data} isCounting={audience.isFetching} />}
    >
      <fieldset className={styles.target} disabled={draft.fault !== undefined}>
        <legend className="visually-hidden">{t('compose.to')}</legend>
        <div className={styles.kinds}>
          {kinds.map((one) => (
            <label key={one} className={styles.kind}>
              <input
                type="radio"
                name="target"
                checked={kind === one}
                onChange={() => draft.edit((body) => withTargetKind(body, one))}
              />
              {t(`targetKind.${one}`)}
            </label>
          ))}
        </div>
        {kind === 'where' && (
          <>
            <Conditions appId={appId} audience={audience.data} setIncomplete={setIncomplete}>
              <Audiences appId={appId} />
            </Conditions>
            <DraftField
              field={settingFields.channels}
              label={t('compose.channels')}
              list={channelsId}
              hint={t('compose.channelsHint')}
            />
            <datalist id={channelsId}>
              {channels.map(({ value }) => (
                <option key={String(value)} value={String(value)} />
              ))}
            </datalist>
          </>
        )}
        {kind === 'cql' && (
          <DraftField field={settingFields.cql} label="CQL" rows={3} hint={t('compose.cqlHint')} />
        )}
        {kind === 'devices' && <Devices />}
      </fieldset>
    </Panel>
  );
}

function Count({ audience, isCounting }: { audience: Audience | undefined; isCounting: boolean }) {
  const { t } = useTranslation();
  if (audience === undefined) return null;
  const { devices, isLeast, tookMs } = audience;
  const deviceCount = formatCount(devices);
  return (
    <span className={isCounting ? styles.note : undefined} aria-live="polite">
      {t(isLeast ? 'compose.atLeast' : 'compose.count', { count: devices, shown: deviceCount })}{' '}
      <span className={styles.note}>({formatDuration(tookMs)})</span>
    </span>
  );
}

function Devices() {
  const { t } = useTranslation();
  return (
    <>
      <div className={styles.pair}>
        <DraftChoice
          field={settingFields.deviceType}
          label={t('devices.type')}
          options={[
            ['ios', 'iOS'],
            ['android', 'Android'],
          ]}
        />
        <DraftField
          field={settingFields.vendor}
          label={t('compose.vendor')}
          hint={t('compose.vendorHint')}
        />
      </div>
      <DraftField
        field={settingFields.deviceIds}
        label={t('compose.deviceIds')}
        rows={4}
        hint={t('compose.deviceIdsHint')}
      />
      <IdFile />
    </>
  );
}

/** Maximum number of devices in a list. */
const maxIds = 500;

/** Takes the device ids from a file that the browser reads. */
function IdFile() {
  const { t } = useTranslation();
  const { draft } = useForm();
  const [read, setRead] = useState<number>();
  const take = ({ text }: { text: string }) => {
    const ids = idsInCsv(text);
    setRead(ids.length);
    if (ids.length > 0 && ids.length <= maxIds)
      draft.edit((body) => withValueAt(body, ['device_ids'], ids));
  };
  return (
    <>
      <FileDrop
        label={t('compose.idFile')}
        choose={t('profile.chooseFile')}
        accept=".csv,.txt"
        read={take}
      />
      {read !== undefined && (
        <p role="status" className={read > maxIds ? styles.error : styles.note}>
          {read > maxIds
            ? t('compose.idsTooMany', { n: formatCount(read), most: maxIds })
            : t('compose.idsRead', { n: formatCount(read) })}
        </p>
      )}
    </>
  );
}
