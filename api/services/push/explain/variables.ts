import type { Database, Handle } from '../../../../shared/db/pool.ts';
import type { SqlCondition } from '../../../../shared/db/tables/installations/audience.ts';
import { countFallbacks, readFieldValues } from '../../../../shared/db/tables/installations/field-values.ts';
import type { Text } from '../../../../shared/domain/admin/trace-texts.ts';
import type { Push } from '../../../../shared/domain/pushes/record.ts';
import type { VariableCounts, Variables } from '../../../../shared/domain/pushes/variables.ts';

/** Counts the devices that meet a condition, by what the variables of a push stand for; undefined without variables. */
export async function forecastVariables(
  tx: Handle,
  condition: SqlCondition,
  variables: Variables | undefined,
): Promise<VariableCounts | undefined> {
  return variables && countFallbacks(tx, condition, variables);
}

/** What a variable stands for in the text of one device; the value itself is personal. */
export type DeviceVariable = {
  name: string;
  field: string;
  isDefault: boolean;
};

/** Tells which variables a device has the field of, as it is now; undefined without variables, and for a deleted device. */
export async function variablesOfDevice(
  db: Database,
  { appId, pushOrder: { variables } }: Push,
  id: number,
): Promise<DeviceVariable[] | undefined> {
  if (!variables) return undefined;
  const values = (await readFieldValues(db, { appId, ids: [id] }, variables)).get(id);
  return (
    values &&
    Object.entries(variables).map(([name, { field }], i) => ({
      ...{ name, field },
      isDefault: (values[i] ?? null) === null,
    }))
  );
}

/** Says for each variable whether the device has its field. */
export const variableTexts = (variables: DeviceVariable[] = []): Text[] =>
  variables.map(({ name, field, isDefault }) => ({
    code: isDefault ? 'variableDefault' : 'variableField',
    params: { name, field },
  }));
