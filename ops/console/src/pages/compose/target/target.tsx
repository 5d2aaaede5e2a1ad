import { useTranslation } from 'react-i18next';
import { settingFields, type TargetKind, targetKindOf, withTargetKind } from '../../../draft/fields.ts';
import { Panel } from '../../../kit/panel.tsx';
import { DraftChoice, DraftField, useForm } from '../draft-field.tsx';
import { Conditions } from './conditions.tsx';
import styles from './target.module.css';

const kinds: readonly TargetKind[] = ['where', 'devices', 'cql'];

/** The devices that the push goes to. */
export function Target({ setIncomplete }: { setIncomplete: (isIncomplete: boolean) => void }) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const kind = targetKindOf(draft.body);
  return (
    <Panel title={t('compose.to')}>
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
            <Conditions setIncomplete={setIncomplete} />
            <DraftField
              field={settingFields.channels}
              label={t('compose.channels')}
              hint={t('compose.channelsHint')}
            />
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
        <DraftField field={settingFields.vendor} label={t('compose.vendor')} hint={t('compose.vendorHint')} />
      </div>
      <DraftField
        field={settingFields.deviceIds}
        label={t('compose.deviceIds')}
        rows={4}
        hint={t('compose.deviceIdsHint')}
      />
    </>
  );
}
