import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { Meta, ShownApp } from '../../../../../client/operations.ts';
import { useApp } from '../../../api/apps.ts';
import { useMeta } from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { Tabs } from '../../../kit/controls/tabs.tsx';
import { SchemaControl } from '../../../kit/form/members.tsx';
import { type SchemaField, shapesOf } from '../../../kit/form/schema.ts';
import { type Draft, textOf } from '../../../kit/form/values.ts';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import { FreezePanel } from '../../operating/operating.tsx';
import { Changes, useValueText } from './changes.tsx';
import { Keys } from './keys.tsx';
import styles from './settings.module.css';

interface OptionRowProps {
  field: SchemaField;
  text: string;
  current: unknown;
  usual: unknown;
  /** Undefined for a role that may not change options. */
  change: ((text: string) => void) | undefined;
}

/** Option with its description, default, limit and value. */
export function OptionRow({ field, text, current, usual, change }: OptionRowProps) {
  const { t } = useTranslation();
  const valueText = useValueText();
  const isChanged = text !== textOf(field, current);
  const limit = limitOf(field, t);
  const name = t(`optionName.${field.name}`, { defaultValue: field.name });
  return (
    <div className={`${styles.option} ${isChanged ? styles.changed : ''}`}>
      <div>
        <strong>{name}</strong>{' '}
        <code className={styles.code} translate="no">
          {field.name}
        </code>
        <p className={styles.meaning}>{t(`option.${field.name}`, { defaultValue: '' })}</p>
      </div>
      <div className={styles.control}>
        {change ? (
          <OptionControl field={field} label={name} text={text} change={change} />
        ) : (
          <span>{valueText(current)}</span>
        )}
        <p className={styles.note}>
          {t('settings.default', { value: valueText(usual) })}
          {limit && ` · ${limit}`}
        </p>
      </div>
    </div>
  );
}

interface OptionControlProps {
  field: SchemaField;
  label: string;
  text: string;
  change: (text: string) => void;
}

/** Switch of an option, or an input if it has more than two values. */
function OptionControl({ field, label, text, change }: OptionControlProps) {
  const { t } = useTranslation();
  if (field.kind !== 'boolean')
    return <SchemaControl field={field} label={label} isCompact text={text} change={change} />;
  const isOn = text === 'true';
  return (
    <label className={styles.switch}>
      <input
        type="checkbox"
        role="switch"
        aria-label={label}
        aria-checked={isOn}
        checked={isOn}
        onChange={(event) => change(String(event.target.checked))}
      />
      {t(isOn ? 'form.on' : 'form.off')}
    </label>
  );
}

function limitOf({ minimum, maximum }: SchemaField, t: ReturnType<typeof useTranslation>['t']) {
  if (minimum === undefined || maximum === undefined) return undefined;
  return t('settings.limit', { min: formatCount(minimum), max: formatCount(maximum) });
}

const route = getRouteApi('/apps/$appId/settings');

/** Options of an app with their defaults and limits. Owners also see its keys. */
export function Settings() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const app = useApp(appId);
  const meta = useMeta();
  const error = app.error ?? meta.error;
  return (
    <>
      <PageHeader title={t('nav.settings')} />
      {app.data && meta.data ? (
        <Options app={app.data} meta={meta.data} />
      ) : error ? (
        <Failure error={error} retry={() => void app.refetch()} />
      ) : (
        <Loading rows={8} />
      )}
      <Commands request={requestOf('getApp', { path: { appId } })} command={`app show ${appId}`} />
    </>
  );
}

function Options({ app, meta }: { app: ShownApp; meta: Meta }) {
  const { t } = useTranslation();
  const mayChange = useMay('operator');
  const isOwner = useMay('owner');
  const isOpen = (option: string) => mayChange && (isOwner || !meta.ownerOptions.includes(option));
  const [draft, setDraft] = useState<Draft>({});
  const fields = shapesOf(meta.options).flatMap((shape) => shape.fields);
  const current: Record<string, unknown> = { ...app.options };
  const defaults = meta.defaults[app.plan];
  const defaultOf = (name: string) => new Map(Object.entries(defaults ?? {})).get(name);
  const { tab = 'keys' } = route.useSearch();
  const navigate = useNavigate();
  const open = (next: string) =>
    void navigate({
      to: '/apps/$appId/settings',
      params: { appId: app.appId },
      search: { tab: next },
    });
  const ofGroup = (group: { name: GroupName; fields: SchemaField[] }) => ({
    value: group.name as string,
    title: t(`settings.${group.name}`),
    content: (
      <Panel title={t(`settings.${group.name}`)}>
        <div className={styles.options}>
          {group.fields.map((field) => (
            <OptionRow
              key={field.name}
              field={field}
              text={draft[field.name] ?? textOf(field, current[field.name])}
              current={current[field.name]}
              usual={defaultOf(field.name)}
              change={
                isOpen(field.name)
                  ? (text) => setDraft({ ...draft, [field.name]: text })
                  : undefined
              }
            />
          ))}
        </div>
      </Panel>
    ),
  });
  const tabs = [
    { value: 'keys', title: t('settings.keys'), content: <Keys app={app} /> },
    ...groupsOf(fields).map(ofGroup),
    ...(mayChange
      ? [
          {
            value: 'freeze',
            title: t('settings.stop'),
            content: <FreezePanel appId={app.appId} />,
          },
        ]
      : []),
  ];
  return (
    <>
      <Tabs
        label={t('settings.parts')}
        value={tabs.some(({ value }) => value === tab) ? tab : 'keys'}
        onChange={open}
        tabs={tabs}
      />
      <Changes
        app={app}
        fields={fields}
        draft={draft}
        clear={(saved) => setDraft((entered) => without(entered, saved))}
      />
    </>
  );
}

const without = (entered: Draft, saved: Draft): Draft =>
  Object.fromEntries(Object.entries(entered).filter(([name, text]) => text !== saved[name]));

/** Options by topic, in the order of the page. Unknown options come last. */
const groups = {
  push: [
    'hybridPush',
    'forbidClientPush',
    'pushCallsPerMinute',
    'dailyRecipientCap',
    'approvalAboveDevices',
    'installationValidityDays',
    'devicePushesPerDay',
    'quietHours',
    'defaultTimeZone',
    'unknownOutcome',
    'reportOpens',
    'receiptUrlGeneration',
  ],
  rights: [
    'allowUserQuery',
    'allowStrictUserQuery',
    'strictQueriesPerAddressPerHour',
    'allowInstallationQuery',
    'allowInstallationDelete',
    'allowRoleCreate',
    'maxRoles',
    'rolesPerAddressPerHour',
    'roleBytesPerAddressPerDay',
    'roleBytes',
    'installationsPerAddressPerHour',
    'installationBytesPerAddressPerDay',
    'installationBytes',
  ],
  accounts: [
    'emailVerification',
    'forbidUnverifiedEmailLogin',
    'phoneVerification',
    'forbidUnverifiedPhoneLogin',
    'reloginAfterPasswordChange',
    'concealUsers',
    'trustUnverifiedNumbers',
    'checkedPlatformsOnly',
    'authPlatforms',
    'userBytes',
    'signUpsPerAddressPerHour',
    'signUpBytesPerAddressPerDay',
  ],
  messages: [
    'generalSms',
    'captchaForSms',
    'captchasPerAddressPerHour',
    'smsBalance',
    'smsCountries',
    'smsPerAddressPerHour',
    'smsPerAppPerDay',
    'mailTemplates',
  ],
  functions: ['functionsUrl', 'functionsStagingUrl', 'functionsMasterKey'],
} as const;

export type GroupName = keyof typeof groups | 'others';

/** Returns the options by topic. Leaves out empty topics. */
export function groupsOf(
  fields: readonly SchemaField[],
): { name: GroupName; fields: SchemaField[] }[] {
  const fieldOf = (option: string) => fields.find(({ name }) => name === option);
  const known = Object.entries(groups) as [GroupName, readonly string[]][];
  const named = new Set(known.flatMap(([, options]) => options));
  return [
    ...known.map(([name, options]) => ({
      name,
      fields: options.map(fieldOf).filter((field) => field !== undefined),
    })),
    { name: 'others' as const, fields: fields.filter(({ name }) => !named.has(name)) },
  ].filter((group) => group.fields.length > 0);
}
