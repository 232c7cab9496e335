import { Field as Base } from '@base-ui/react/field'
import type { ComponentProps, ReactNode } from 'react'
import { WithCode } from '../with-code.tsx'
import { control } from './control.ts'
import { useFieldRefusal } from './refusal.ts'
import { Select, type SelectProps } from './select.tsx'

export { control } from './control.ts'

/** A control with its name, what helps, and what is wrong with it. `children` is `TextInput`, `TextArea` or `SelectInput`. */
export function Field({
  label,
  hint,
  fault,
  field,
  children,
}: {
  label: string
  hint?: ReactNode
  fault?: ReactNode
  /** Its name in the request: what the service says of it is shown here. */
  field?: string
  children: ReactNode
}) {
  const refusal = useFieldRefusal(field)
  const wrong = fault ?? refusal
  return (
    <Base.Root invalid={wrong !== undefined} className="block">
      <Base.Label className="mb-1 block font-medium">{label}</Base.Label>
      {children}
      {hint && <Base.Description className="mt-1 text-sm text-soft">{hint}</Base.Description>}
      {wrong !== undefined && (
        <Base.Error match className="mt-1 text-sm font-medium text-bad">
          {typeof wrong === 'string' ? <WithCode text={wrong} /> : wrong}
        </Base.Error>
      )}
    </Base.Root>
  )
}

export function TextInput({ className = '', ...props }: ComponentProps<'input'>) {
  return <Base.Control {...props} className={`${control} ${className}`} />
}

/** A secret that is typed: never shown, and not what the browser has stored for this site. */
export function SecretInput(props: Omit<ComponentProps<'input'>, 'type' | 'autoComplete'>) {
  return <TextInput {...props} type="password" autoComplete="new-password" spellCheck={false} />
}

/** What is said of a secret that the service stores. */
export const storedSecretHint = 'It is stored encrypted. It is never shown again.'

export function TextArea({ className = '', ...props }: ComponentProps<'textarea'>) {
  return <Base.Control render={<textarea {...props} />} className={`${control} min-h-20 ${className}`} />
}

/** A choice from a list, below its label. */
export function SelectInput(props: SelectProps) {
  return <Select {...props} />
}

/** A choice in a bar of filters, whose name is read and not shown. */
export function FilterSelect({ className = '', ...props }: SelectProps & { label: string }) {
  return <Select {...props} className={`!w-auto max-w-full ${className}`} />
}

/** Words to look for, in a bar of filters. `/` puts the cursor here. */
export function SearchInput({ label, className = '!w-56', ...props }: ComponentProps<'input'> & { label: string }) {
  return (
    <input
      type="search"
      data-search
      aria-label={label}
      placeholder={label}
      {...props}
      className={`${control} min-h-8 max-sm:!w-full max-sm:min-h-10 ${className}`}
    />
  )
}

export function Checkbox({ label, className = '', ...props }: ComponentProps<'input'> & { label: ReactNode }) {
  return (
    <label className={`flex min-h-6 items-center gap-2 ${className}`}>
      <input type="checkbox" {...props} className="size-4 shrink-0" />
      {label}
    </label>
  )
}
