import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../../client/client.ts';
import type { Meta, ShownApp } from '../../../../../client/operations.ts';
import { useApp } from '../../../api/apps.ts';
import { useMeta } from '../../../api/profiles.ts';
import { useMay } from '../../../api/session.tsx';
import { Commands } from '../../../kit/controls/copy.tsx';
import { shapesOf } from '../../../kit/form/schema.ts';
import { type Draft, textOf } from '../../../kit/form/values.ts';
import { PageHeader, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { FreezePanel } from '../../operating/freeze.tsx';
import { Changes } from './changes.tsx';
import { groupsOf } from './groups.ts';
import { Keys } from './keys.tsx';
import { OptionRow } from './option-row.tsx';
import styles from './settings.module.css';

const route = getRouteApi('/apps/$appId/settings');

/** Options of an app with their defaults and limits, and its keys for owners. */
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
  return (
    <>
      <Keys app={app} />
      {groupsOf(fields).map((group) => (
        <Panel key={group.name} title={t(`settings.${group.name}`)}>
          <div className={styles.options}>
            {group.fields.map((field) => (
              <OptionRow
                key={field.name}
                field={field}
                text={draft[field.name] ?? textOf(field, current[field.name])}
                current={current[field.name]}
                usual={defaultOf(field.name)}
                change={isOpen(field.name) ? (text) => setDraft({ ...draft, [field.name]: text }) : undefined}
              />
            ))}
          </div>
        </Panel>
      ))}
      {mayChange && <FreezePanel appId={app.appId} />}
      <Changes app={app} fields={fields} draft={draft} clear={() => setDraft({})} />
    </>
  );
}
