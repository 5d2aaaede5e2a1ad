import { describe, expect, test } from 'vitest';
import { QueueFull, Semaphore } from '../../shared/semaphore.ts';

describe('a semaphore', () => {
  /** Returns functions that start and end tasks, and the names in the order of their starts. */
  function controlledTasks(queue: Semaphore) {
    const started: string[] = [];
    const ends = new Map<string, () => void>();
    const add = (key: string, name: string) =>
      queue.run(key, async () => {
        started.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
        return name;
      });
    const end = async (name: string) => {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { begun: started, add, end };
  }

  test('alternates between keys, in order, and limits concurrency', async () => {
    const { begun, add, end } = controlledTasks(new Semaphore({ concurrency: 2, maxWaiting: 10 }));
    const all = [
      ...['a1', 'a2', 'a3', 'a4'].map((name) => add('a', name)),
      add('b', 'b1'),
      add('c', 'c1'),
    ];
    expect(begun).toEqual(['a1', 'a2']);
    for (const name of ['a1', 'a2', 'b1', 'a3', 'c1', 'a4']) {
      await end(name);
      expect(begun.length).toBeLessThanOrEqual(6);
    }
    expect(begun.slice(2).sort()).toEqual(['a3', 'a4', 'b1', 'c1']);
    expect(begun.indexOf('b1')).toBeLessThan(begun.indexOf('a4'));
    expect(begun.indexOf('c1')).toBeLessThan(begun.indexOf('a4'));
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'c1']);
  });

  test('refuses tasks over the limit of a key, and accepts those of others', async () => {
    const { add, end } = controlledTasks(new Semaphore({ concurrency: 1, maxWaiting: 2 }));
    const first = add('a', 'a1');
    const more = [add('a', 'a2'), add('a', 'a3')];
    await expect(add('a', 'a4')).rejects.toBeInstanceOf(QueueFull);
    const other = add('b', 'b1');
    for (const name of ['a1', 'a2', 'b1', 'a3']) await end(name);
    await Promise.all([first, ...more, other]);
    const again = add('a', 'a5');
    await end('a5');
    expect(await again).toBe('a5');
  });

  test('continues after a failing task', async () => {
    const queue = new Semaphore({ concurrency: 1, maxWaiting: 2 });
    const failing = queue.run('a', () => Promise.reject(new Error('no')));
    const next = queue.run('a', () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });

  test('limits the concurrency of one key, even if more slots are free', async () => {
    const { begun, add, end } = controlledTasks(
      new Semaphore({ concurrency: 3, perKey: 2, maxWaiting: 10 }),
    );
    const all = ['a1', 'a2', 'a3', 'a4'].map((name) => add('a', name));
    expect(begun).toEqual(['a1', 'a2']);
    all.push(add('b', 'b1'), add('b', 'b2'));
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    await end('a1');
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    await end('b1');
    expect(begun.at(-1)).toBe('b2');
    for (const name of ['a2', 'b2', 'a3', 'a4']) await end(name);
    expect(await Promise.all(all)).toHaveLength(6);
  });

  test('reports which key caused a timeout', async () => {
    const queue = new Semaphore({ concurrency: 2, perKey: 1, maxWaiting: 10, maxWaitMs: 20 });
    const { add, end } = controlledTasks(queue);
    const running = [add('a', 'a1'), add('b', 'b1')];
    await expect(add('a', 'a2')).rejects.toMatchObject({ name: 'QueueFull', isOfKey: true });
    await expect(add('c', 'c1')).rejects.toMatchObject({ name: 'QueueFull', isOfKey: false });
    await end('a1');
    await end('b1');
    await Promise.all(running);
    const next = add('c', 'c2');
    await end('c2');
    expect(await next).toBe('c2');
  });

  test('accepts a shorter wait for a single task', async () => {
    const queue = new Semaphore({ concurrency: 1, maxWaiting: 10 });
    const { add, end } = controlledTasks(queue);
    const first = add('a', 'a1');
    await expect(queue.run('b', () => Promise.resolve(), 5)).rejects.toBeInstanceOf(QueueFull);
    await end('a1');
    expect(await first).toBe('a1');
  });
});
