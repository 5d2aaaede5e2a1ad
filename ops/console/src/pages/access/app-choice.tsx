import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAppMenu, useAppNames } from '../../api/apps.ts';
import { Choice, TextField } from '../../kit/controls/field.tsx';

interface AppChoiceProps {
  /** Text of the choice of no app. */
  any: string;
  /** Id of the chosen app; empty for none. */
  value: string;
  change: (appId: string) => void;
}

/**
 * Choice of an app. Where a menu cannot show all apps, a field above it finds others by name or id.
 */
export function AppChoice({ any, value, change }: AppChoiceProps) {
  const { t } = useTranslation();
  const [text, setText] = useState('');
  const all = useAppMenu();
  const { apps, hasMore } = useAppMenu(text);
  const nameOf = useAppNames([value]);
  const isListed = value === '' || apps.some(({ appId }) => appId === value);
  return (
    <>
      {all.hasMore && (
        <TextField
          type="search"
          label={t('apps.find')}
          hint={hasMore ? t('apps.more') : undefined}
          maxLength={100}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      )}
      <Choice label={t('people.app')} value={value} onChange={(event) => change(event.target.value)}>
        <option value="">{any}</option>
        {!isListed && (
          <option value={value} translate="no">
            {nameOf(value)}
          </option>
        )}
        {apps.map(({ appId, name }) => (
          <option key={appId} value={appId} translate="no">
            {name}
          </option>
        ))}
      </Choice>
    </>
  );
}
