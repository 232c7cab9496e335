import { Link } from '@tanstack/react-router'
import { basePath, api } from '../api/client.ts'
import { paths } from '../paths.ts'
import { Button } from '../ui/button.tsx'
import { Menu, MenuChoice, MenuItem, MenuLink } from '../ui/menu.tsx'
import { tellFailure } from '../ui/toast.tsx'
import { usePreference } from '../preferences.ts'

const themes = [
  { value: 'system', label: 'As the system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
] as const

/** The first letters of the first and the last word of a name, in a circle: a picture and not text, as the name stands beside it. */
function Initials({ name }: { name: string }) {
  const letters = name.match(/(?<=^|\s)\S/gu) ?? []
  return (
    <span
      aria-hidden
      data-initials={`${letters[0] ?? ''}${letters.length > 1 ? letters.at(-1) : ''}`}
      className="inline-flex size-6 items-center justify-center rounded-full bg-accent-soft text-xs font-medium text-accent uppercase before:content-[attr(data-initials)]"
    />
  )
}

/** Who is signed in, how it looks, and the way out. */
export function AccountMenu({ name }: { name: string | undefined }) {
  const [theme, setTheme] = usePreference('theme')
  const signOut = async (): Promise<void> => {
    try {
      await api.user.logout()
      location.assign(`${basePath}login`)
    } catch (error) {
      tellFailure('You could not be signed out', error)
    }
  }
  return (
    <Menu
      trigger={
        <Button kind="ghost" aria-label={`Account of ${name ?? 'the signed-in user'}`}>
          <Initials name={name ?? ''} />
          <span className="max-w-40 truncate max-sm:hidden">{name}</span>
        </Button>
      }
    >
      <MenuLink render={<Link {...paths.preferences()} />}>Preferences</MenuLink>
      <MenuLink render={<a href={`${basePath}account/sign-in`} />}>Ways to sign in</MenuLink>
      <MenuLink render={<a href={`${basePath}docs`} />}>API reference</MenuLink>
      <MenuChoice label="Theme" value={theme} choices={themes} choose={setTheme} />
      <MenuItem onClick={() => void signOut()}>Sign out</MenuItem>
    </Menu>
  )
}
