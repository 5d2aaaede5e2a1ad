import { useEffect, useState } from 'react';

/** Returns a value after it has stayed unchanged for `restMs`. Returns undefined before. */
export function useRested<T>(value: T, restMs: number): T | undefined {
  const [rested, setRested] = useState<T>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(() => value), restMs);
    return () => clearTimeout(timer);
  }, [value, restMs]);
  return rested;
}
