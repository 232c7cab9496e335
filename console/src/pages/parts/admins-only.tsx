import { paths } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'

/** In place of what only owners and administrators see: why, and who they are. */
export function AdminsOnly({ title }: { title: string }) {
  return (
    <EmptyState title={title} actions={<ButtonLink {...paths.members()}>Show members</ButtonLink>}>
      <p>It needs the scope admin, which your role does not have. Owners and administrators give roles.</p>
    </EmptyState>
  )
}
