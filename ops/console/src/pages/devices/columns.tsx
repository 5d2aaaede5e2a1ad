import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useFields } from '../../api/devices.ts';
import styles from './devices.module.css';

const storageKey = 'carillon-device-columns';
const usual = ['deviceType', 'channels', 'valid', 'updatedAt', 'createdAt'] as const;

/** Columns with a text of their own. Other columns have the name of their field. */
const titles: Readonly<Record<string, string>> = {
  deviceType: 'devices.type',
  channels: 'devices.channels',
  valid: 'devices.valid',
  updatedAt: 'devices.updated',
  createdAt: 'devices.created',
};

export const titleOf = (name: string, t: (key: string) => string): string =>
  titles[name] === undefined ? name : t(titles[name]);

/** Returns the chosen columns, which this browser keeps, and a function that changes them. */
export function useColumnNames(): [string[], (names: string[]) => void] {
  const [names, setNames] = useState(stored);
  const choose = (next: string[]) => {
    localStorage.setItem(storageKey, JSON.stringify(next));
    setNames(next);
  };
  return [names, choose];
}

function stored(): string[] {
  try {
    const read: unknown = JSON.parse(localStorage.getItem(storageKey) ?? '');
    return Array.isArray(read) ? read.map(String) : [...usual];
  } catch {
    return [...usual];
  }
}

/** Members that every list of fields leaves out: ids, which have a column, and objects. */
const leftOut = new Set(['objectId', 'ACL']);

interface ColumnChoiceProps {
  appId: string;
  chosen: readonly string[];
  choose: (names: string[]) => void;
}

/** Checkboxes for the columns: the usual ones, and the fields of the app's devices. */
export function ColumnChoice({ appId, chosen, choose }: ColumnChoiceProps) {
  const { t } = useTranslation();
  const fields = (useFields(appId).data?.results ?? []).map(({ name }) => name);
  const names = [...new Set([...usual, ...fields, ...chosen])].filter((name) => !leftOut.has(name));
  return (
    <details className={styles.columns}>
      <summary>{t('devices.columns')}</summary>
      <div className={styles.choices}>
        {names.map((name) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={chosen.includes(name)}
              onChange={(event) =>
                choose(
                  event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name),
                )
              }
            />
            <span translate={titles[name] === undefined ? 'no' : undefined}>
              {titleOf(name, t)}
            </span>
          </label>
        ))}
      </div>
    </details>
  );
}
