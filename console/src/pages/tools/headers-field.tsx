import { Plus, X } from 'lucide-react'
import { Button, IconButton } from '../../ui/button.tsx'
import { TextInput } from '../../ui/forms/field.tsx'

type Headers = readonly (readonly [name: string, value: string])[]

/** Headers of a request, in which placeholders stand for secrets. */
export function HeadersField({
  value,
  onChange,
  fault,
}: {
  value: Headers
  onChange: (value: Headers) => void
  fault: string | undefined
}) {
  const set = (at: number, header: readonly [string, string]) =>
    onChange(value.map((one, index) => (index === at ? header : one)))
  return (
    <fieldset>
      <legend className="mb-1 font-medium">Headers</legend>
      {value.map(([name, text], at) => (
        // Rows have no identity but their place.
        <div key={at} className="mb-2 flex gap-2">
          <TextInput
            className="!w-40 shrink-0 max-sm:!w-28"
            aria-label={`Name of header ${at + 1}`}
            placeholder="Authorization"
            spellCheck={false}
            autoComplete="off"
            value={name}
            onChange={({ target }) => set(at, [target.value, text])}
          />
          <TextInput
            className="min-w-0 font-mono !text-sm"
            aria-label={`Value of header ${at + 1}`}
            placeholder="Bearer ${credentials.WEATHER_KEY}"
            spellCheck={false}
            autoComplete="off"
            value={text}
            onChange={({ target }) => set(at, [name, target.value])}
          />
          <IconButton
            label={`Remove header ${at + 1}`}
            onClick={() => onChange(value.filter((_, index) => index !== at))}
          >
            <X size={14} aria-hidden />
          </IconButton>
        </div>
      ))}
      <Button size="small" onClick={() => onChange([...value, ['', '']])}>
        <Plus size={14} aria-hidden /> Add header
      </Button>
      <p className="mt-1 text-sm text-soft">
        <code>{'${credentials.NAME}'}</code> stands for a credential of the project, <code>{'${env.NAME}'}</code> for a
        variable of the agent. Neither is shown to a model.
      </p>
      {fault !== undefined && <p className="mt-1 text-sm font-medium text-bad">{fault}</p>}
    </fieldset>
  )
}
