import { useEffect, useState } from 'react'
import { tellFailure } from './ui/toast.tsx'

/**
 * A part of the page whose code is loaded when it is first wanted; undefined until then. A part that could not be loaded is said,
 * and tried again when it is wanted again.
 */
export function useLoaded<Part>(load: () => Promise<Part>, isWanted: boolean): Part | undefined {
  // A part is a function itself, which the state would call.
  const [loaded, setLoaded] = useState<{ part: Part }>()
  useEffect(() => {
    if (!isWanted || loaded) return
    load().then(
      (part) => setLoaded({ part }),
      (failure: unknown) => tellFailure('A part of the console was not loaded', failure),
    )
  }, [load, isWanted, loaded])
  return loaded?.part
}
