import { PageHeader } from '../../ui/page.tsx'

export default function MembersPage() {
  return <PageHeader title="Members" />
}
