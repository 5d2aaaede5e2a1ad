import { useTranslation } from 'react-i18next';
import { messageClassNames } from '../../../../../shared/domain/pushes/message-classes.ts';
import type { PushForecast } from '../../../../client/operations.ts';
import { settingFields } from '../../draft/fields.ts';
import { connectorName } from '../../text/explanation.ts';
import styles from './compose.module.css';
import { DraftChoice, useForm } from './draft-field.tsx';

type Share = NonNullable<PushForecast['connectors']['apns']>;

/** Portable message class, with its effect at each vendor that the audience has. */
export function MessageClass() {
  const { t } = useTranslation();
  const { forecast } = useForm();
  const effects = Object.entries(forecast?.connectors ?? {}).flatMap(([id, share]) =>
    share && hasEffect(share.messageClass) ? [{ id, effect: share.messageClass }] : [],
  );
  return (
    <div>
      <DraftChoice
        field={settingFields.messageClass}
        label={t('compose.class')}
        hint={t('compose.classHint')}
        options={[
          ['', t('compose.noClass')],
          ...messageClassNames.map((name) => [name, t(`messageClass.${name}`)] as const),
        ]}
      />
      {effects.length > 0 && (
        <dl className={styles.effects} aria-label={t('compose.classEffects')}>
          {effects.map(({ id, effect }) => (
            <div key={id}>
              <dt>{connectorName(id)}</dt>
              <Effect effect={effect} />
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

const hasEffect = ({ name, dailyLimit, missing }: Share['messageClass']): boolean =>
  name !== null || dailyLimit !== null || missing.length > 0;

/** Message class at a vendor: its daily limit, and what is missing. */
function Effect({ effect: { name, dailyLimit, missing } }: { effect: Share['messageClass'] }) {
  const { t } = useTranslation();
  const limit =
    dailyLimit === null ? t('messageClass.unlimited') : t('messageClass.limit', { n: dailyLimit });
  const names = missing.map((one) =>
    one === 'right' || one === 'class' ? t(`messageClass.missing.${one}`) : one,
  );
  return (
    <>
      <dd>
        {name === null ? t('compose.noClass') : t(`messageClass.${name}`)}: {limit}
      </dd>
      {names.length > 0 && (
        <dd className={styles.problem}>{t('messageClass.lacks', { names: names.join(', ') })}</dd>
      )}
    </>
  );
}
