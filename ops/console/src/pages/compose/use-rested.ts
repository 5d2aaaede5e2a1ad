import { useEffect, useState } from 'react';

/** Returns a value after it has stayed unchanged for `delayMs`. Returns undefined before. */
export function useDebounced<T>(value: T, delayMs: number): T | undefined {
  const [rested, setRested] = useState<T>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(() => value), delayMs);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return rested;
}
