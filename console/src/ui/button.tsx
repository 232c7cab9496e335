import { Button as Base } from '@base-ui/react/button'
import { Link, type LinkProps } from '@tanstack/react-router'
import type { ComponentProps, ReactNode } from 'react'
import { tellReason } from './toast.tsx'

type Kind = 'plain' | 'primary' | 'danger' | 'ghost'

const kinds: Record<Kind, string> = {
  plain: 'border-edge bg-panel hover:bg-quiet text-text',
  primary: 'border-accent bg-accent text-on-accent hover:bg-accent-over hover:border-accent-over font-medium',
  danger: 'border-bad text-bad bg-panel hover:bg-bad-soft font-medium',
  ghost: 'border-transparent text-soft hover:bg-quiet hover:text-text',
}
const shape =
  'inline-flex items-center justify-center gap-1.5 rounded-md border no-underline whitespace-nowrap ' +
  'aria-disabled:opacity-55 disabled:opacity-55'
const sizes = {
  normal: 'min-h-8 px-2.5 text-base max-sm:min-h-10',
  /** Among lines of text. */
  small: 'min-h-6 px-2 text-sm',
}

interface Look {
  kind?: Kind | undefined
  size?: keyof typeof sizes
  /** Why it is disabled: it stays focusable, and shows the reason to everyone. */
  reason?: string | undefined
}

/** A button. With `reason` it is disabled, keeps its place in the order of keys, and says why when it is pressed. */
export function Button({
  kind = 'plain',
  size = 'normal',
  reason,
  className = '',
  title,
  ...props
}: ComponentProps<'button'> & Look) {
  const isOff = reason !== undefined
  return (
    <Base
      type="button"
      {...props}
      {...(isOff ? { onClickCapture: () => tellReason(reason) } : {})}
      disabled={props.disabled || isOff}
      focusableWhenDisabled={isOff}
      title={reason ?? title}
      aria-description={reason}
      className={`${shape} ${sizes[size]} ${kinds[kind]} ${className}`}
    />
  )
}

/** A link that looks like a button. With `reason` it leads nowhere, and says why. */
export function ButtonLink({
  kind = 'plain',
  className = '',
  reason,
  ...props
}: LinkProps & { className?: string; kind?: Kind; children?: ReactNode; reason?: string | undefined }) {
  if (reason !== undefined)
    return (
      <Button kind={kind} className={className} reason={reason}>
        {props.children}
      </Button>
    )
  return <Link {...props} className={`${shape} ${sizes.normal} ${kinds[kind]} ${className}`} />
}

/** A button of one icon; `label` is what it is called. */
export function IconButton({ label, className = '', ...props }: ComponentProps<'button'> & Look & { label: string }) {
  return <Button kind="ghost" aria-label={label} title={label} {...props} className={`!px-2 ${className}`} />
}
