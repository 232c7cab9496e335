import { useSearchState } from '../../search-state.ts'

type Words = Record<string, string | undefined>

/** What the address says behind `?`, all of it as text; a number is written as one, so that it stands there without quotes. */
export function useAddressWords(): [Words, (change: Words, options?: { replace?: boolean }) => void] {
  const [search, change] = useSearchState()
  const words = Object.fromEntries(
    Object.entries(search).map(([name, value]) => [name, value === undefined ? undefined : String(value)]),
  )
  return [
    words,
    (next, options) =>
      change(
        Object.fromEntries(
          Object.entries(next).map(([name, value]) => [
            name,
            value !== undefined && /^\d{1,9}$/.test(value) ? Number(value) : value,
          ]),
        ),
        options,
      ),
  ]
}
