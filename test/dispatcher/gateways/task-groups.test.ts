import { expect, test } from 'vitest';
import type { DeliverTask, ThreadResult } from '../../../dispatcher/sending/task.ts';
import { GroupResults, type GroupTask, TaskGroups } from '../../../dispatcher/sending/threads/task-groups.ts';
import { RecipientStates } from '../../../shared/domain/recipient-states.ts';
import { noDurations } from '../../../shared/process/durations.ts';

const taskOf = (batchId: number): DeliverTask => ({ appId: 'app', pushId: 1, batchId, connector: 'apns' });

const resultOf = ({ batchId }: DeliverTask): ThreadResult => ({
  ...{
    connector: 'apns',
    profile: String(batchId),
    retriedCount: 0,
    failures: [],
    sentBy: null,
    retries: [],
  },
  ...{ isInterrupted: false, hasUnsent: false, health: { asked: 1, failed: 0 }, trouble: null },
  ...{ profileError: null, messages: [], calls: [], durations: noDurations() },
  stateBytes: RecipientStates.allOpen(1).bytes,
});

/** Main thread and thread in one, with what they send to each other. */
function connect(deliver: (task: DeliverTask) => Promise<ThreadResult>) {
  const groups: number[][] = [];
  const messages: object[] = [];
  const thread = new GroupResults((message) => {
    messages.push(message);
    main.take(message);
  });
  const main: TaskGroups = new TaskGroups((group: GroupTask) => {
    groups.push(group.tasks.map(({ task }) => task.batchId));
    return thread.run(group, deliver);
  });
  return { main, groups, messages };
}

test('tasks of one turn share a message and so do their results; a slow one delays no other', async () => {
  const slow = Promise.withResolvers<void>();
  const { main, groups, messages } = connect(async (task) => {
    if (task.batchId === 1) await slow.promise;
    if (task.batchId === 2) throw new Error('the database is away');
    return resultOf(task);
  });
  const runs = [1, 2, 3, 4].map((id) => main.run(taskOf(id)));
  const ended = await Promise.allSettled(runs.slice(1));
  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
  expect(await runs[3]).toMatchObject({ profile: '4' });
  expect(groups).toEqual([[1, 2, 3, 4]]);
  expect(messages).toHaveLength(1);
  slow.resolve();
  expect(await runs[0]).toMatchObject({ profile: '1' });
  expect(main.take({ http2: [], thread: 1 })).toBe(false);
});

test('tasks of a thread that failed, or that ended before its results were read, are rejected', async () => {
  const failing = new TaskGroups(() => Promise.reject(new Error('the thread has ended')));
  await expect(failing.run(taskOf(1))).rejects.toThrow('the thread has ended');
  const losing = new TaskGroups(() => Promise.resolve());
  await expect(losing.run(taskOf(1))).rejects.toThrow('before its results were read');
});
