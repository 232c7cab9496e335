import { PageHeader } from '../../ui/page.tsx'

export default function ApprovalsPage() {
  return <PageHeader title="Approvals" />
}
