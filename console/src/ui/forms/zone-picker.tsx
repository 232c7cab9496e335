import { useMemo, useState } from 'react'
import { localZone } from '#contract/accounts/preference-choices.ts'
import { formatCount, zoneName, type TimeZone } from '../../format.ts'
import { Picker } from './picker.tsx'

/** Names of today for some that browsers list by an earlier name of the place. */
const renamed: Record<string, string> = {
  'Africa/Asmera': 'Africa/Asmara',
  'America/Buenos_Aires': 'America/Argentina/Buenos_Aires',
  'America/Godthab': 'America/Nuuk',
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Europe/Kiev': 'Europe/Kyiv',
}

/** Zones that are offered at a time: the others are found by their names. */
const offered = 20

/** Chooses an IANA time zone. With `hasLocal` also that of the browser, which is then another one in another place. */
export function ZonePicker({
  label,
  value,
  onChange,
  hasLocal = false,
  className,
}: {
  label: string
  value: TimeZone
  onChange: (zone: TimeZone) => void
  hasLocal?: boolean
  className?: string
}) {
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const all = useMemo(() => {
    const zones = Intl.supportedValuesOf('timeZone').map((zone) => renamed[zone] ?? zone)
    return [...new Set([...(hasLocal ? [localZone] : []), 'UTC', ...zones])].map(choiceOf)
  }, [hasLocal])
  const matching = all.filter(({ name }) => words(name).includes(words(text.trim())))
  const more = matching.length - offered
  return (
    <Picker
      label={label}
      chosen={choiceOf(value)}
      none="Choose a time zone"
      choices={matching.slice(0, offered)}
      text={text}
      setText={setText}
      isOpen={isOpen}
      setOpen={setOpen}
      onChange={onChange}
      note={
        matching.length === 0
          ? 'No matching time zones.'
          : more > 0
            ? `${formatCount(more)} more: type a part of the name.`
            : ''
      }
      {...(className === undefined ? {} : { className })}
    />
  )
}

const choiceOf = (zone: TimeZone) => ({
  id: zone,
  name: zone === localZone ? `${zoneName(zone)} (this browser)` : zone,
})

/** As people type it: `new york` is America/New_York. */
const words = (name: string): string => name.toLowerCase().replaceAll('_', ' ')
